import { z } from 'zod';
import type { Handle, Stamp } from '../../core/extension.ts';

export const HANDLE_VERSION = 1;

const Data = z.strictObject({
  attemptId: z.string(),
  directory: z.string(),
  agent: z.string(),
  /** The recipe's, for every program: plain text by the profile's own word. */
  variables: z.record(z.string(), z.string()),
});
export type SshHandle = z.infer<typeof Data>;

export function handleOf(
  { attemptId }: Stamp,
  directory: string,
  agent: string,
  variables: Readonly<Record<string, string>>,
): Handle {
  return { version: HANDLE_VERSION, data: { attemptId, directory, agent, variables } };
}

export function readHandle(handle: Handle): SshHandle {
  return Data.parse(handle.data);
}
