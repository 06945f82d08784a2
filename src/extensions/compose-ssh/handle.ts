import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { Json } from '../../contract/values/json.ts';
import type { Handle, Stamp } from '../../core/ports/extension.ts';
import { lost } from './failure.ts';

export const HANDLE_VERSION = 1;

const HandleData = z.object({
  project: z.string().regex(/^sbx[0-9a-f]{20}$/),
  owner: z.string(),
  /** Where programs run and files are, unless another service is named. */
  service: z.string(),
  services: z.array(z.string()),
  /** Port → service. */
  ports: z.record(z.string(), z.string()),
  /** Port of the gateway → what is behind it. */
  gateway: z.record(z.string(), z.object({ service: z.string(), target: z.number() })),
  wait_for: z.array(z.string()),
  wait_seconds: z.number(),
  keep_images: z.boolean(),
  notes: z.array(z.string()),
  /** Variables of services whose values are secrets: they are kept in no snapshot. */
  secret_variables: z.array(z.string()).default([]),
});
export type StackHandle = z.infer<typeof HandleData>;

/** The compose project of one attempt: the same for everybody who knows the stamp, another for every owner. */
export function projectOf({ owner, attemptId }: Stamp): string {
  return `sbx${createHash('sha256').update(`${owner}\n${attemptId}`).digest('hex').slice(0, 20)}`;
}

export function handleOf(data: StackHandle): Handle {
  return { version: HANDLE_VERSION, data: data as unknown as Json };
}

export function readHandle(handle: Handle): StackHandle {
  if (handle.version !== HANDLE_VERSION) throw lost('The handle is of a version that is not understood.');
  return HandleData.parse(handle.data);
}

/** As it lies on the host; `null` when it is not one. */
export function parseHandle(text: string): StackHandle | null {
  try {
    return HandleData.parse(JSON.parse(text));
  } catch {
    return null;
  }
}
