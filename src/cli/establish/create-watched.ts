import type { CreateOptions } from '../../client/resources/sandboxes.ts';
import type { SandboxerClient } from '../../client/sandboxer-client.ts';
import { freshKey } from '../../client/transport/fresh-key.ts';
import type { CloudEvent } from '../../contract/events/event.ts';
import type { CreateSandboxInput, Sandbox } from '../../contract/sandboxes/sandbox.ts';
import { byteText } from '../output/amounts.ts';
import { plainText } from '../output/plain-text.ts';
import type { Progress } from '../output/progress.ts';

/** Wait of the first request; a longer wait takes a second request. */
const PATIENCE_SECONDS = 1;
const STAGES: Readonly<Record<string, string>> = { pull: 'Pulling' };

interface Amount {
  readonly done: number;
  readonly total: number;
}

/** Formats an event `sandbox.progress` as one line: changing values come first, as a terminal may be narrow. */
export function progressText({ details }: CloudEvent['data']): string {
  const { stage, subject } = details as { readonly stage: string; readonly subject: string };
  const { bytes, parts } = details as { readonly bytes: Amount; readonly parts: Amount };
  const amounts = [
    bytes.total > 0 ? `${byteText(bytes.done)} of ${byteText(bytes.total)}` : null,
    parts.total > 0 ? `${parts.done} of ${parts.total} layers` : null,
  ].filter((text) => text !== null);
  const known = amounts.length === 0 ? '' : ` ${amounts.join(', ')}:`;
  return plainText(`${STAGES[stage] ?? stage}${known} ${subject}`);
}

async function follow(client: SandboxerClient, id: string, progress: Progress, signal: AbortSignal) {
  const options = { sandbox: id, type: ['sandbox.progress'], after: '0', signal } as const;
  for await (const event of client.events.follow(options)) progress.update(progressText(event.data));
}

/**
 * Creates a sandbox and waits for it. On a terminal, after a while, a line shows the progress of the backend: the first answer is
 * requested early, it names the sandbox whose events to follow, and the same request is repeated.
 */
export async function createWatched(
  client: SandboxerClient,
  request: CreateSandboxInput,
  options: CreateOptions,
  progress: Progress,
): Promise<Sandbox> {
  const { wait = 'ready', waitSeconds } = options;
  if (!progress.isShown || wait === 'none' || (waitSeconds ?? Infinity) <= PATIENCE_SECONDS)
    return progress.during(client.sandboxes.create(request, options));
  const keyed = { ...options, idempotencyKey: options.idempotencyKey ?? freshKey() };
  const over = new AbortController();
  try {
    const early = await client.sandboxes.create(request, { ...keyed, waitSeconds: PATIENCE_SECONDS });
    if (early.state !== 'requested' && early.state !== 'provisioning') return early;
    void follow(client, early.sandbox_id, progress, over.signal).catch(() => {});
    const left = waitSeconds === undefined ? {} : { waitSeconds: waitSeconds - PATIENCE_SECONDS };
    return await client.sandboxes.create(request, { ...keyed, ...left });
  } finally {
    over.abort();
    progress.stop();
  }
}
