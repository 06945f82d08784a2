import { readFileSync, writeFileSync } from 'node:fs';
import { z } from 'zod';
import { IsolationLevel } from '../../contract/capability.ts';
import { Mount } from '../../contract/inputs.ts';
import { RootFsShape } from './root-fs.ts';
import { writeLasting, writeWhole } from './whole-file.ts';

/**
 * Everything about a sandbox that must outlive this process, in `<sandbox>/record.json`. What the spawner must know of
 * a running one (pid, start time, slot, end) is in its own file beside it.
 */
const SandboxRecord = z.strictObject({
  version: z.literal(1),
  sandboxUid: z.string(),
  attemptId: z.string(),
  owner: z.string(),
  createdAt: z.number(),
  endsAt: z.number(),
  keep: z.boolean(),
  /** Paused where nothing can freeze it: nothing of it runs until it is resumed. */
  stopped: z.boolean().default(false),
  /** Its disk became a layer, and it is on its way up again on top of that: whoever finds it so sees to it. */
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
  }),
  volumes: z
    .array(z.strictObject({ volumeId: z.string(), path: z.string(), readOnly: z.boolean() }))
    .default([]),
  variables: z.record(z.string(), z.string()),
  secretFiles: z.boolean(),
  isolation: IsolationLevel,
  noNewPrivs: z.boolean().default(false),
  /** Directories outside that are shown inside, checked. */
  mounts: z.array(Mount).default([]),
  notes: z.array(z.string()),
});
export type SandboxRecord = z.infer<typeof SandboxRecord>;

/** One whose disk is kept outlasts the machine, as soon as this resolves. */
export async function writeRecord(path: string, record: SandboxRecord): Promise<void> {
  if (record.keep) await writeLasting(path, JSON.stringify(record));
  else writeWhole(path, JSON.stringify(record));
}

/** The first one: nobody has read it before, and nobody believes what is not whole. */
export async function writeFirstRecord(path: string, record: SandboxRecord): Promise<void> {
  if (record.keep) await writeLasting(path, JSON.stringify(record));
  else writeFileSync(path, JSON.stringify(record), { mode: 0o600 });
}

/** `null` when there is none, or it was cut off by a crash. */
export function readRecord(path: string): SandboxRecord | null {
  try {
    return SandboxRecord.parse(JSON.parse(readFileSync(path, 'utf8')));
  } catch {
    return null;
  }
}
