import { SandboxerError } from '../../contract/errors/errors.ts';
import type { ReapReport, ReapRequest } from '../../contract/sandboxes/stale.ts';
import type { Caller } from '../../core/tenancy/caller.ts';
import { requireScope } from '../../core/tenancy/caller.ts';
import { contextFor } from '../backends/backend-context.ts';
import { within } from '../backends/within.ts';
import type { Control } from '../control.ts';
import type { ControlPorts } from '../ports/control-ports.ts';
import { destroySandbox } from '../sandboxes/destroy-sandbox.ts';
import type { Stale } from './find-stale.ts';
import { findStale } from './find-stale.ts';
import { removeOrphan } from './reconcile-extension.ts';

type Outcome = Pick<ReapReport['items'][number], 'outcome' | 'detail'>;

/** The number of removals at the same time: a host that takes two minutes for each must not take an hour for thirty. */
const AT_ONCE = 8;

async function removeSnapshot(
  deps: ControlPorts,
  { extension, snapshot }: NonNullable<Stale['kept']>,
  signal: AbortSignal,
): Promise<void> {
  const { snapshotId, hostId, providerKeyId } = snapshot;
  const spec = { snapshotId, name: null, owner: deps.owner };
  await within(deps, deps.settings.operationTimeoutMs, signal, async (given) =>
    extension.deleteSnapshot?.(null, spec, await contextFor(deps, hostId, given, providerKeyId)),
  );
}

async function reapOne(
  control: Control,
  caller: Caller,
  stale: Stale,
  signal: AbortSignal,
): Promise<Outcome> {
  if (stale.row) {
    // Each removal has an audit record of its own beside that of the request.
    const trail = caller.trail && { ...caller.trail };
    const by = trail ? { ...caller, trail } : caller;
    const destroying = destroySandbox(control, by, {
      id: stale.row.uid,
      wait: true,
      timeoutMs: control.settings.teardownTimeoutMs,
      signal,
    });
    const { sandbox, released } = await destroying;
    if (released) return { outcome: 'left-alone', detail: 'It is shared, and another caller’s.' };
    if (sandbox.state === 'destroyed') return { outcome: 'removed', detail: null };
    return { outcome: 'under-way', detail: 'Its teardown goes on by itself.' };
  }
  if (stale.kept) {
    await removeSnapshot(control, stale.kept, signal);
    return { outcome: 'removed', detail: null };
  }
  const { extension, owned } = stale.found as NonNullable<Stale['found']>;
  if (await removeOrphan(control, extension, owned, signal)) return { outcome: 'removed', detail: null };
  return { outcome: 'failed', detail: 'The backend did not remove all of it; the server tries again.' };
}

interface ReapOptions {
  readonly dryRun: boolean;
  readonly signal: AbortSignal;
}

async function outcomeOf(
  control: Control,
  caller: Caller,
  stale: Stale,
  { dryRun, signal }: ReapOptions,
): Promise<Outcome> {
  if (!stale.row && !stale.found && !stale.kept) return { outcome: 'left-alone', detail: 'It is not ours.' };
  if (dryRun) return { outcome: 'would-remove', detail: null };
  try {
    return await reapOne(control, caller, stale, signal);
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof SandboxerError)) throw error;
    return { outcome: 'failed', detail: error.detail };
  }
}

interface ReapStale {
  readonly request: ReapRequest;
  readonly signal: AbortSignal;
}

/**
 * Removes those of the objects that `findStale` finds which are ours. An object of another owner has no stamp of ours, so its
 * backend cannot be asked to end it.
 */
export async function reapStale(
  control: Control,
  caller: Caller,
  { request, signal }: ReapStale,
): Promise<ReapReport> {
  requireScope(caller, 'sandboxes');
  const survey = await findStale(control, caller, { signal });
  const oldest = survey.at - (request.older_than ?? 0) * 1000;
  const wanted = survey.stale.filter(
    ({ item, since }) =>
      (request.kinds?.includes(item.kind) ?? true) &&
      (request.older_than === undefined || (since !== null && since <= oldest)),
  );
  const items: ReapReport['items'] = [];
  for (let from = 0; from < wanted.length; from += AT_ONCE) {
    const batch = wanted.slice(from, from + AT_ONCE);
    const outcomes = batch.map((one) => outcomeOf(control, caller, one, { dryRun: request.dry_run, signal }));
    for (const [n, outcome] of (await Promise.all(outcomes)).entries())
      items.push({ ...(batch[n] as Stale).item, ...outcome });
  }
  return { dry_run: request.dry_run, items, unseen: survey.unseen };
}
