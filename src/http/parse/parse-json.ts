import { setImmediate } from 'node:timers/promises';
import { SandboxerError } from '../../contract/errors/errors.ts';
import { JsonScanner } from '../bounds/json-scanner.ts';

/** The most values in a text that no route bounds itself. */
const MOST_VALUES = 50_000;
const IN_ONE_GO_BYTES = 256 * 1024;
let lastLarge: Promise<unknown> = Promise.resolve();
const UTF8 = new TextDecoder('utf-8', { fatal: true });
/** Escapes and names that need a closer look; most bodies have none of them. */
const SUSPICIOUS = /\\u|__proto__|"constructor"/;

function refuse(detail: string, field?: string): SandboxerError {
  return new SandboxerError('SBX_INVALID_REQUEST', detail, field === undefined ? {} : { field });
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

/** Decodes strict UTF-8 without NUL. */
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

/** Parses strict JSON: UTF-8, bounded nesting and number of values, no prototype names, no ill-formed text. */
export function parseJson(body: Buffer, allowsNul: boolean, mostValues = MOST_VALUES): unknown {
  new JsonScanner(mostValues).feed(body);
  // A bare NUL is no JSON anyway.
  return parseText(decodeText(body, true), allowsNul);
}

/**
 * As `parseJson`, for a body that was scanned as it arrived. A large body is decoded in pieces with other work in between, one
 * body at a time: what is left to do in one go is bounded by the number of values.
 */
export async function parseScanned(body: Buffer, allowsNul: boolean): Promise<unknown> {
  if (body.length <= IN_ONE_GO_BYTES) return parseText(decodeText(body, true), allowsNul);
  const parsed = lastLarge.then(() => parseLarge(body, allowsNul));
  lastLarge = parsed.catch(() => {});
  return parsed;
}

async function parseLarge(body: Buffer, allowsNul: boolean): Promise<unknown> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  const pieces: string[] = [];
  try {
    for (let at = 0; at < body.length; at += IN_ONE_GO_BYTES) {
      pieces.push(decoder.decode(body.subarray(at, at + IN_ONE_GO_BYTES), { stream: true }));
      await setImmediate();
    }
    pieces.push(decoder.decode());
  } catch {
    throw refuse('The body is not valid UTF-8.');
  }
  const text = pieces.join('');
  await setImmediate();
  return parseText(text, allowsNul);
}

function parseText(text: string, allowsNul: boolean): unknown {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw refuse('The body is not valid JSON.');
  }
  if (SUSPICIOUS.test(text)) inspect(value, '', allowsNul);
  return value;
}
