import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { Stamp } from '../../../core/ports/extension.ts';
import { EngineRecord, ROOTFUL } from './engine-record.ts';

export const StackHandle = z.object({
  project: z.string().regex(/^sbx[0-9a-f]{20}$/),
  owner: z.string(),
  /** Service of programs and files, unless a request names another. */
  service: z.string(),
  services: z.array(z.string()),
  /** Port → service. */
  ports: z.record(z.string(), z.string()),
  /** Port of the gateway → service and its port behind it. */
  gateway: z.record(z.string(), z.object({ service: z.string(), target: z.number() })),
  wait_for: z.array(z.string()),
  wait_seconds: z.number(),
  keep_images: z.boolean(),
  notes: z.array(z.string()),
  /** Variables of services whose values are secrets: no snapshot stores them. */
  secret_variables: z.array(z.string()).default([]),
  engine: EngineRecord.default(ROOTFUL),
});
export type StackHandle = z.infer<typeof StackHandle>;

/** Returns the compose project of an attempt: the same for the same stamp, another for every owner. */
export function projectOf({ owner, attemptId }: Stamp): string {
  return `sbx${createHash('sha256').update(`${owner}\n${attemptId}`).digest('hex').slice(0, 20)}`;
}

/** Parses a stored handle; returns `null` for another text. */
export function parseHandle(text: string): StackHandle | null {
  try {
    return StackHandle.parse(JSON.parse(text));
  } catch {
    return null;
  }
}
