const ASCII = /^[\x20-\x7e]*$/;

/**
 * Escapes foreign text so that it cannot steer the terminal: control characters become visible, and so do bytes that are no text.
 */
export function plainText(text: string): string {
  if (ASCII.test(text)) return text;
  return text.replace(
    /[\u0000-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069\udc80-\udcff]/gu,
    (character) => {
      if (character === '\n' || character === '\t') return ' ';
      const code = character.charCodeAt(0);
      return `\\x${(code >= 0xdc80 ? code - 0xdc00 : code).toString(16).padStart(2, '0')}`;
    },
  );
}

/** Escapes like `plainText`, but keeps lines. */
export function plainLines(text: string): string {
  return text.split('\n').map(plainText).join('\n');
}

/** Returns the columns that a text takes on a terminal. */
export function displayWidth(text: string): number {
  if (ASCII.test(text)) return text.length;
  const wide =
    /\p{Script=Han}|\p{Script=Hangul}|\p{Script=Hiragana}|\p{Script=Katakana}|\p{Emoji_Presentation}/u;
  const invisible = /\p{Mark}|\u200d|\ufe0f/u;
  let width = 0;
  for (const character of text) width += invisible.test(character) ? 0 : wide.test(character) ? 2 : 1;
  return width;
}

/** Cuts to at most `width` columns, with an ellipsis where text is missing. */
export function cutText(text: string, width: number): string {
  if (displayWidth(text) <= width) return text;
  let kept = '';
  let used = 0;
  for (const character of text) {
    const next = used + displayWidth(character);
    if (next > width - 1) break;
    kept += character;
    used = next;
  }
  return `${kept}…`;
}
