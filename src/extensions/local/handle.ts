import { z } from 'zod';
import { SandboxerError } from '../../contract/errors/errors.ts';
import type { Handle } from '../../core/ports/extension.ts';

export const HANDLE_VERSION = 1;

const HandleData = z.strictObject({
  attempt_id: z.string().min(1).max(200),
  owner: z.string().min(1).max(200),
});
export type HandleData = z.infer<typeof HandleData>;

export function handleOf(attemptId: string, owner: string): Handle {
  return { version: HANDLE_VERSION, data: { attempt_id: attemptId, owner } };
}

export function readHandle(handle: Handle): HandleData {
  const parsed = HandleData.safeParse(handle.data);
  if (handle.version === HANDLE_VERSION && parsed.success) return parsed.data;
  throw new SandboxerError('SBX_EXTENSION_FAILED', `A handle of version ${handle.version} cannot be read.`);
}
