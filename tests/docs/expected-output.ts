const PLACEHOLDER = /<[a-z][a-z0-9 _-]*>|…/;

function normal(line: string): string {
  return line.replace(/\s+/g, ' ').trim();
}

function literal(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
}

/**
 * Shown output as a pattern: `<id>` and `…` within a line stand for anything, `…` alone for any number of lines.
 * How many spaces there are does not count, since the width of a column depends on ids.
 */
export function outputPattern(shown: string): RegExp {
  const lines = shown.split('\n').map((line) => {
    if (line.trim() === '…') return '(?:[^\\n]*\\n)*?';
    const parts = normal(line).split(new RegExp(`(${PLACEHOLDER.source})`));
    return `${parts.map((part) => (PLACEHOLDER.test(part) ? '[^\\n]*?' : literal(part))).join('')}\\n`;
  });
  return new RegExp(`^${lines.join('')}$`);
}

export function outputMatches(shown: string, actual: string): boolean {
  const text = actual.replace(/\n+$/, '').split('\n').map(normal).join('\n');
  return outputPattern(shown).test(`${text}\n`);
}
