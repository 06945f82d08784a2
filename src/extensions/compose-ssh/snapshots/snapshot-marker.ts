/** Owner mark of a snapshot, in a file beside it. */
import { z } from 'zod';
import type { SnapshotSpec } from '../../../core/ports/extension.ts';

export interface KeptSnapshot {
  /** `null` where there is no readable mark. */
  readonly owner: string | null;
  readonly snapshotId: string | null;
  readonly createdAt: number | null;
  readonly parts: readonly string[];
}

const Marker = z.object({
  owner: z.string().min(1).max(200),
  snapshot_id: z.string().min(1).max(200),
  created_at: z.number().int(),
});

export function snapshotMarker({ owner, snapshotId }: SnapshotSpec, now: number): string {
  return JSON.stringify({ owner, snapshot_id: snapshotId, created_at: now });
}

function readLine(line: string): KeptSnapshot | null {
  const space = line.indexOf(' ');
  const [word, rest] = [line.slice(0, space), line.slice(space + 1)];
  if (word !== 'marker' && word !== 'unmarked') return null;
  const unknown = { owner: null, snapshotId: null, createdAt: null };
  if (word === 'unmarked') return { ...unknown, parts: [`directory ${rest}`] };
  try {
    const { owner, snapshot_id, created_at } = Marker.parse(JSON.parse(rest));
    return { owner, snapshotId: snapshot_id, createdAt: created_at, parts: ['its directory and images'] };
  } catch {
    return { ...unknown, parts: ['a directory whose mark cannot be read'] };
  }
}

export function readKept(text: string): KeptSnapshot[] {
  return text
    .split('\n')
    .map(readLine)
    .filter((one) => one !== null);
}
