import { SandboxerError } from '../../contract/errors/errors.ts';

const MOST_LEVELS = 64;

/**
 * Counts levels and values of JSON outside of strings, before any code recurses over them or makes objects of them. Takes the
 * text in pieces: a body is checked while it arrives, and refused before the rest of it is kept.
 */
export class JsonScanner {
  readonly #mostValues: number;
  #depth = 0;
  #values = 1;
  #inString = false;
  #escaped = false;

  constructor(mostValues: number) {
    this.#mostValues = mostValues;
  }

  /** Throws `SBX_INVALID_REQUEST` once a bound is passed. */
  feed(piece: Uint8Array): void {
    let depth = this.#depth;
    let values = this.#values;
    let inString = this.#inString;
    let escaped = this.#escaped;
    for (let at = 0; at < piece.length; at += 1) {
      const byte = piece[at];
      if (inString) {
        if (escaped) escaped = false;
        else if (byte === 0x5c) escaped = true;
        else if (byte === 0x22) inString = false;
      } else if (byte === 0x22) inString = true;
      else if (byte === 0x2c) values += 1;
      else if (byte === 0x7b || byte === 0x5b) {
        depth += 1;
        values += 1;
        if (depth > MOST_LEVELS) throw refuse(`The body is nested deeper than ${MOST_LEVELS} levels.`);
      } else if (byte === 0x7d || byte === 0x5d) depth -= 1;
    }
    if (values > this.#mostValues) throw refuse(`The body has more than ${this.#mostValues} values.`);
    this.#depth = depth;
    this.#values = values;
    this.#inString = inString;
    this.#escaped = escaped;
  }
}

function refuse(detail: string): SandboxerError {
  return new SandboxerError('SBX_INVALID_REQUEST', detail);
}
