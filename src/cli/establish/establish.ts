import type { CreateOptions } from '../../client/resources/sandboxes.ts';
import type { SandboxerClient } from '../../client/sandboxer-client.ts';
import { freshKey } from '../../client/transport/fresh-key.ts';
import type { Sandbox } from '../../contract/sandboxes/sandbox.ts';
import { CommandFailure } from '../failures/command-failure.ts';
import type { Interrupt } from '../process/interrupts.ts';
import { exitCodeAfter, onInterrupts } from '../process/interrupts.ts';

type Work = (options: CreateOptions) => Promise<Sandbox>;

const UNFINISHED: readonly Sandbox['state'][] = ['requested', 'provisioning'];

/**
 * Destroys the sandbox that an interrupted request made, if any: the same request once more returns it. A finished one may have
 * been there before, and a shared one may have other waiters: both are left alone. Returns a message.
 */
async function takeBack(client: SandboxerClient, work: Work, options: CreateOptions): Promise<string> {
  try {
    const { sandbox_id: id, state, scope } = await work({ ...options, wait: 'none' });
    if (!UNFINISHED.includes(state) || scope === 'shared')
      return `${id} is ${state}. If you do not need it: sandboxer destroy ${id}`;
    await client.sandboxes.destroy(id, { wait: 'none' });
    return `${id} is being destroyed.`;
  } catch {
    return 'Look at what was made: sandboxer list';
  }
}

/** Waits for a new sandbox. Ctrl-C destroys it: its id was not printed yet. */
export async function establish(
  client: SandboxerClient,
  options: CreateOptions,
  work: Work,
): Promise<Sandbox> {
  const abort = new AbortController();
  const keyed = { ...options, idempotencyKey: freshKey() };
  let ended: Interrupt | null = null;
  const release = onInterrupts({
    first: (signal) => {
      ended = signal;
      abort.abort(new Error('It was interrupted.'));
    },
    again: (signal) => process.exit(exitCodeAfter(signal)),
  });
  try {
    return await work({ ...keyed, signal: abort.signal });
  } catch (error) {
    if (ended === null) throw error;
    const remedy = await takeBack(client, work, keyed);
    throw new CommandFailure('It was interrupted.', {
      code: 'SBX_CLI_INTERRUPTED',
      remedy,
      exitCode: exitCodeAfter(ended),
    });
  } finally {
    release();
  }
}
