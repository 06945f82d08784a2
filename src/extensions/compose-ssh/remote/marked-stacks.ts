/** Finds stacks on a host by their marks: a file beside each, and labels on the engine's objects. */
import { z } from 'zod';
import type { Stamp } from '../../../core/ports/extension.ts';
import { readMarker } from './labels.ts';

export interface MarkedStack {
  /** `null` where the mark has no owner. */
  readonly owner: string | null;
  readonly sandboxUid: string | null;
  readonly attemptId: string | null;
  readonly createdAt: number | null;
  readonly parts: readonly string[];
}

/** Returns the stamp of a stack whose mark is complete. */
export function stampOf({ owner, sandboxUid, attemptId }: MarkedStack): Stamp | null {
  if (owner === null || sandboxUid === null || attemptId === null) return null;
  return { owner, sandboxUid, attemptId };
}

const Labelled = z.tuple([z.string(), z.string().min(1), z.string(), z.string(), z.string()]);

/** Parses `["container","name","owner","uid","attempt"]`: JSON, because any user of the engine can write labels. */
function labelled(line: string): MarkedStack | null {
  let parts: z.infer<typeof Labelled>;
  try {
    parts = Labelled.parse(JSON.parse(line));
  } catch {
    return null;
  }
  const [kind, name, owner, sandboxUid, attemptId] = parts;
  return {
    owner: owner || null,
    sandboxUid: sandboxUid || null,
    attemptId: attemptId || null,
    createdAt: null,
    parts: [`${kind} ${name}`],
  };
}

function readLine(line: string): MarkedStack | null {
  const space = line.indexOf(' ');
  const [word, rest] = [line.slice(0, space), line.slice(space + 1)];
  if (word === 'labels') return labelled(rest);
  if (word === 'unmarked')
    return { owner: null, sandboxUid: null, attemptId: null, createdAt: null, parts: [`directory ${rest}`] };
  const marker = word === 'marker' ? readMarker(rest) : null;
  return marker && { ...marker.stamp, createdAt: marker.createdAt, parts: ['its directory'] };
}

/** Returns one entry for each stack; an object without an attempt id counts alone. */
export function readMarked(text: string): MarkedStack[] {
  const found = new Map<string, MarkedStack>();
  for (const line of text.split('\n')) {
    const one = readLine(line);
    if (one === null) continue;
    const key = one.attemptId === null ? line : `${one.owner}\n${one.attemptId}`;
    const before = found.get(key);
    const parts = [...new Set([...(before?.parts ?? []), ...one.parts])];
    found.set(key, {
      ...one,
      sandboxUid: before?.sandboxUid ?? one.sandboxUid,
      createdAt: before?.createdAt ?? one.createdAt,
      parts,
    });
  }
  return [...found.values()];
}
