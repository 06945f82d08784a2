/** A text or a list above this is written in pieces. */
const LONG_TEXT = 64 * 1024;
const LONG_LIST = 200;
const PIECE = 32 * 1024;

/** Whether the JSON of a body may be so long that making it in one go would hold up other requests. Looks at the top alone. */
export function isLarge(body: unknown): boolean {
  if (typeof body !== 'object' || body === null) return false;
  for (const value of Object.values(body)) {
    if (typeof value === 'string' && value.length > LONG_TEXT) return true;
    if (Array.isArray(value) && value.length > LONG_LIST) return true;
  }
  return false;
}

/** The JSON of a value, as JSON.stringify makes it, in pieces of bounded length. */
export function* jsonPieces(body: unknown): Generator<string> {
  let pending = '';
  for (const part of parts(body, 0)) {
    pending += part;
    if (pending.length < PIECE) continue;
    yield pending;
    pending = '';
  }
  if (pending !== '') yield pending;
}

/** Below this level values are small: an entry of a list. */
const LEVELS = 2;

function* parts(value: unknown, level: number): Generator<string> {
  if (typeof value === 'string' && value.length > PIECE) yield* textParts(value);
  else if (Array.isArray(value) && level < LEVELS) {
    let separator = '[';
    for (const item of value) {
      yield separator;
      yield* parts(item ?? null, level + 1);
      separator = ',';
    }
    yield value.length === 0 ? '[]' : ']';
  } else if (isPlain(value) && level < LEVELS) {
    let separator = '{';
    for (const [name, item] of Object.entries(value)) {
      if (item === undefined) continue;
      yield `${separator}${JSON.stringify(name)}:`;
      yield* parts(item, level + 1);
      separator = ',';
    }
    yield separator === '{' ? '{}' : '}';
  } else yield JSON.stringify(value);
}

/** Half of a surrogate pair at a cut is written as an escape, and its other half too: together they are the character. */
function* textParts(text: string): Generator<string> {
  yield '"';
  for (let at = 0; at < text.length; at += PIECE)
    yield JSON.stringify(text.slice(at, at + PIECE)).slice(1, -1);
  yield '"';
}

function isPlain(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !('toJSON' in value);
}
