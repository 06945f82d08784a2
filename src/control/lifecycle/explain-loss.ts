import { SandboxerError } from '../../contract/errors/errors.ts';
import type { SandboxRecord } from '../../core/lifecycle/sandbox.ts';
import type { Tx } from '../../core/ports/store/store.ts';
import type { ControlPorts } from '../ports/control-ports.ts';
import { whyEnded } from './why-ended.ts';

/** Codes of errors that also a lost channel causes. */
const LOST: ReadonlySet<string> = new Set([
  'SBX_EXTENSION_FAILED',
  'SBX_BACKEND_LOST',
  'SBX_GONE',
  'SBX_NOT_FOUND',
  'SBX_INTERNAL',
]);

const CREATE = 'Create a new sandbox.';
const LONGER = 'Create a new one with a longer ttl, or extend it in time ("sandboxer extend").';
const USED = 'Create a new one, with a longer idle_reap or none, or use it in time.';

interface Reason {
  readonly why: string;
  readonly remedy: string;
}

const REASONS: Readonly<Record<string, Reason>> = {
  ttl: { why: 'reached the end of its time (ttl)', remedy: LONGER },
  idle: { why: 'was idle for longer than its idle_reap', remedy: USED },
  credits: { why: 'was ended because the credits are used up', remedy: 'Add credits and create a new one.' },
  destroy: { why: 'was destroyed', remedy: CREATE },
};
const RECREATED: Reason = {
  why: 'was recreated',
  remedy: 'Run it again: the new one has the same id and starts from its recipe.',
};

/**
 * Returns why the sandbox ended, by its newest two events: the end itself, and the expiry that caused it. `before` above every
 * number orders them newest first.
 */
async function reasonOf(tx: Tx, row: SandboxRecord): Promise<Reason> {
  const events = await tx.events.list({
    workspaceId: row.workspaceId,
    sandboxUid: row.uid,
    types: ['sandbox.expired', 'sandbox.destroying'],
    after: 0,
    before: Number.MAX_SAFE_INTEGER,
    limit: 2,
  });
  for (const { details } of events) {
    const known = REASONS[String(details.reason)];
    if (known) return known;
  }
  return { why: `is ${row.state}`, remedy: CREATE };
}

async function ended(tx: Tx, row: SandboxRecord, generation: number): Promise<SandboxerError | null> {
  const gone = ({ why, remedy }: Reason) =>
    new SandboxerError('SBX_GONE', `The sandbox "${row.id}" ${why} while it was in use.`, { remedy });
  if (row.generation !== generation || row.recreating) return gone(RECREATED);
  switch (row.state) {
    case 'ready':
    case 'active':
      return null;
    case 'paused':
      return new SandboxerError(
        'SBX_INVALID_STATE',
        `The sandbox "${row.id}" was paused while it was in use.`,
        {
          remedy: 'Resume it, and run it again.',
        },
      );
    case 'failed':
      return gone({
        why: `failed (${row.failure?.detail ?? 'it is lost'})`,
        remedy: row.failure?.remedy ?? CREATE,
      });
    default:
      return gone(await reasonOf(tx, row));
  }
}

/**
 * Returns the error for a caller whose channel into a sandbox broke: that the sandbox ended, and why, if it did; `error`
 * unchanged otherwise. Called when an exec, a process or the log of a service fails.
 */
export async function explainLoss(
  deps: ControlPorts,
  seen: Pick<SandboxRecord, 'uid' | 'generation'>,
  error: unknown,
): Promise<unknown> {
  if (error instanceof SandboxerError && !LOST.has(error.code)) return error;
  const why = await deps.store
    .read('explain', async (tx) => {
      const row = await tx.sandboxes.get(seen.uid);
      return row && ((await ended(tx, row, seen.generation)) ?? row);
    })
    .catch(() => null);
  if (why === null || why instanceof SandboxerError) return why ?? error;
  const reason = await whyEnded(deps, why);
  return reason
    ? new SandboxerError(reason.code, reason.detail, { remedy: reason.remedy, cause: error })
    : error;
}
