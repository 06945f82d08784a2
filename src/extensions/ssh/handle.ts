import { z } from 'zod';
import type { Handle } from '../../core/ports/extension.ts';

export const HANDLE_VERSION = 2;

const Data = z.strictObject({
  attemptId: z.string(),
  directory: z.string(),
  agent: z.string(),
  /** The recipe's, for every program: plain text by the profile's own word. */
  variables: z.record(z.string(), z.string()),
  isolation: z.enum(['none', 'policy']).default('none'),
  /** Whether a confined agent serves files: version 1 had none. */
  files: z.boolean().default(false),
  /** Where secrets are on the host, and whether some of them belong into the environment. */
  secrets: z.strictObject({ directory: z.string(), environment: z.boolean() }).nullable().default(null),
});
export type SshHandle = z.infer<typeof Data>;

export function handleOf(data: SshHandle): Handle {
  return { version: HANDLE_VERSION, data };
}

export function readHandle(handle: Handle): SshHandle {
  return Data.parse(handle.data);
}
