import type { Creation } from '../../../contract/values/state.ts';
import type { RunResult, SshHost } from '../../shared/ssh/ssh-host.ts';
import { hostFailure, shown } from './failure.ts';

export interface Call {
  readonly signal: AbortSignal;
  readonly stdin?: string | AsyncIterable<Uint8Array>;
  readonly creation?: Creation;
  readonly timeoutMs?: number;
}

const CALL_MS = 120_000;
const MOST_OUTPUT = 16 * 1_048_576;

/** Exit code of a script whose stack is not there. */
export const GONE = 76;

/** Runs a script on a host, in one round trip. */
export async function runScript(
  host: SshHost,
  script: string,
  args: readonly string[],
  call: Call,
): Promise<RunResult> {
  const { signal, stdin, creation = 'maybe_created', timeoutMs = CALL_MS } = call;
  const result = await host.run(['sh', '-c', script, 'sh', ...args], {
    signal,
    creation,
    timeoutMs,
    maxOutputBytes: MOST_OUTPUT,
    ...(stdin === undefined ? {} : { stdin }),
  });
  if (result.truncated) throw hostFailure('The host said too much', shown(result.stderr), creation);
  return result;
}
