import { SandboxerError } from '../contract/errors.ts';

const MOST_LEVELS = 64;
const UTF8 = new TextDecoder('utf-8', { fatal: true });
/** Escapes and names that need a closer look; most bodies have none of them. */
const SUSPICIOUS = /\\u|__proto__|"constructor"/;

function refuse(detail: string, field?: string): SandboxerError {
  return new SandboxerError('SBX_INVALID_REQUEST', detail, field === undefined ? {} : { field });
}

/** Counts brackets outside of strings, before anything recurses over them. */
function requireShallow(body: Buffer): void {
  let depth = 0;
  let inString = false;
  for (let at = 0; at < body.length; at += 1) {
    const byte = body[at];
    if (inString) {
      if (byte === 0x5c) at += 1;
      else if (byte === 0x22) inString = false;
    } else if (byte === 0x22) inString = true;
    else if (byte === 0x7b || byte === 0x5b) {
      depth += 1;
      if (depth > MOST_LEVELS) throw refuse(`The body is nested deeper than ${MOST_LEVELS} levels.`);
    } else if (byte === 0x7d || byte === 0x5d) depth -= 1;
  }
}

function requireText(text: string, field: string, allowsNul: boolean): void {
  if (!text.isWellFormed()) throw refuse('Text holds half of a surrogate pair.', field);
  if (!allowsNul && text.includes('\0')) throw refuse('Text cannot hold a NUL character.', field);
}

function hasPrototype(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, 'prototype');
}

/** Names that would reach a prototype, and text that no database keeps as it is. */
function inspect(value: unknown, field: string, allowsNul: boolean): void {
  if (typeof value === 'string') requireText(value, field, allowsNul);
  if (value === null || typeof value !== 'object') return;
  for (const [key, child] of Object.entries(value)) {
    const inner = field === '' ? key : `${field}.${key}`;
    if (key === '__proto__' || (key === 'constructor' && hasPrototype(child))) {
      throw refuse(`"${key}" cannot be the name of a field.`, inner);
    }
    requireText(key, field, false);
    inspect(child, inner, allowsNul);
  }
}

/** Strict UTF-8 without NUL. */
export function decodeText(body: Buffer, allowsNul = false): string {
  let text: string;
  try {
    text = UTF8.decode(body);
  } catch {
    throw refuse('The body is not valid UTF-8.');
  }
  if (!allowsNul && text.includes('\0')) throw refuse('Text cannot hold a NUL character.');
  return text;
}

/** Strict JSON: UTF-8, bounded nesting, no prototype names, no ill-formed text. */
export function parseJson(body: Buffer, allowsNul: boolean): unknown {
  requireShallow(body);
  // A bare NUL is no JSON anyway.
  const text = decodeText(body, true);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw refuse('The body is not valid JSON.');
  }
  if (SUSPICIOUS.test(text)) inspect(value, '', allowsNul);
  return value;
}
