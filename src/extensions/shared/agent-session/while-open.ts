import type { AgentChannel } from './agent-channel.ts';

/**
 * Runs `work` on a channel and closes the channel afterwards; with `keepOpen` only if `work` fails. An abort closes it at
 * once, and its reason is thrown.
 */
export async function whileOpen<Result>(
  channel: AgentChannel,
  signal: AbortSignal | undefined,
  work: () => Promise<Result>,
  keepOpen = false,
): Promise<Result> {
  const aborted = Promise.withResolvers<never>();
  const abort = () => aborted.reject(signal?.reason);
  if (signal?.aborted) abort();
  signal?.addEventListener('abort', abort, { once: true });
  let done = false;
  try {
    const result = await (signal === undefined ? work() : Promise.race([aborted.promise, work()]));
    done = true;
    return result;
  } finally {
    signal?.removeEventListener('abort', abort);
    if (!done || !keepOpen) channel.close();
  }
}
