import { existsSync, readFileSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { z } from 'zod';
import { IsolationLevel } from '../../../contract/extensions/capability.ts';
import { Mount } from '../../../contract/profiles/inputs.ts';
import { RootFsShape } from './root-fs.ts';
import { writeLasting, writeWhole } from './whole-file.ts';

/**
 * State of a sandbox that must outlive this process, in `<sandbox>/record.json`. The spawner's state of a running one (pid, start
 * time, slot, end) is in its own file beside it.
 */
const SandboxRecord = z.strictObject({
  version: z.literal(1),
  sandboxUid: z.string(),
  attemptId: z.string(),
  owner: z.string(),
  createdAt: z.number(),
  endsAt: z.number(),
  /** Whether the disk outlives the sandbox's end: true unless `persistence` is `ephemeral`. */
  keep: z.boolean(),
  /** Paused where it cannot be frozen: no program of it runs until it is resumed. */
  stopped: z.boolean().default(false),
  /** Its disk became a layer, and its start on top of that is not complete: the next use completes it. */
  sealed: z.boolean().default(false),
  /** First host id of its range; all of them share one where ids cannot be mapped. */
  range: z.number().int(),
  ...RootFsShape,
  limits: z.strictObject({
    memoryBytes: z.number().nullable(),
    pids: z.number().nullable(),
    cpuMillis: z.number().nullable(),
    openFiles: z.number().nullable(),
    diskMb: z.number().int().nullable(),
    /** Limit on the machine's own disk, where it has none of its own: counted, not enforced by a file system. */
    roomBytes: z.number().int().nullable().default(null),
  }),
  volumes: z
    .array(z.strictObject({ volumeId: z.string(), path: z.string(), readOnly: z.boolean() }))
    .default([]),
  variables: z.record(z.string(), z.string()),
  secretFiles: z.boolean(),
  isolation: IsolationLevel,
  noNewPrivs: z.boolean().default(false),
  /** Directories of the host that are shown inside, checked. */
  mounts: z.array(Mount).default([]),
  notes: z.array(z.string()),
});
export type SandboxRecord = z.infer<typeof SandboxRecord>;

/** Link beside the record to the layer that its disk became: this process may have ended before it stored that. */
const SEALED = 'sealed';
const LAYER = /^layers\/[^/]+\/(?:fs|disk\/upper)$/;

/** Writes the record. With `keep`, it survives a crash of the machine once this resolves. */
export async function writeRecord(path: string, record: SandboxRecord): Promise<void> {
  if (record.keep) await writeLasting(path, JSON.stringify(record));
  else writeWhole(path, JSON.stringify(record));
  if (!record.sealed) return;
  // From here on the record has the layer.
  const layer = namedBeside(path);
  if (layer !== null && record.layers.includes(layer)) rmSync(join(dirname(path), SEALED), { force: true });
}

/**
 * Writes the first record, in place where it need not last: no earlier one can be lost, and an incomplete one counts as none.
 * With `keep`, it survives a crash of the machine.
 */
export async function writeFirstRecord(path: string, record: SandboxRecord): Promise<void> {
  if (record.keep) await writeLasting(path, JSON.stringify(record));
  else writeFileSync(path, JSON.stringify(record), { mode: 0o600 });
}

/** Returns `null` when there is none, or a crash cut it off. */
export function readRecord(path: string): SandboxRecord | null {
  try {
    const record = SandboxRecord.parse(JSON.parse(readFileSync(path, 'utf8')));
    const layer = namedBeside(path);
    const base = dirname(dirname(dirname(path)));
    // The link is made before the layer.
    if (layer === null || record.layers.includes(layer) || !existsSync(join(base, layer))) return record;
    return { ...record, layers: [layer, ...record.layers], sealed: true };
  } catch {
    return null;
  }
}

function namedBeside(path: string): string | null {
  try {
    const layer = readlinkSync(join(dirname(path), SEALED));
    return LAYER.test(layer) ? layer : null;
  } catch {
    return null;
  }
}
