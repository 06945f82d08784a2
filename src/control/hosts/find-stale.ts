import { SandboxerError } from '../../contract/errors/errors.ts';
import type { StaleItem, StaleReport } from '../../contract/sandboxes/stale.ts';
import type { SandboxRecord } from '../../core/lifecycle/sandbox.ts';
import type { StaleFinding } from '../../core/lifecycle/stale.ts';
import { staleOwned, staleRecord, staleSnapshot, staleUnowned } from '../../core/lifecycle/stale.ts';
import { isoTimeOrNull } from '../../core/ports/clock.ts';
import type { Extension, Owned, OwnedSnapshot } from '../../core/ports/extension.ts';
import type { Tx } from '../../core/ports/store/store.ts';
import type { Caller } from '../../core/tenancy/caller.ts';
import { requireScope, visibleWorkspace } from '../../core/tenancy/caller.ts';
import type { Found } from '../backends/look-everywhere.ts';
import { ownedEverywhere, snapshotsEverywhere, unownedEverywhere } from '../backends/look-everywhere.ts';
import type { Control } from '../control.ts';
import type { ControlPorts } from '../ports/control-ports.ts';

const ENDING = ['expired', 'failed', 'destroying'] as const;
const MOST = 500;

/** A stale object as callers see it, with the data that its removal needs; there is none without a row or a stamp of ours. */
export interface Stale {
  readonly item: StaleItem;
  readonly since: number | null;
  readonly row?: SandboxRecord;
  readonly found?: { readonly extension: Extension; readonly owned: Found<Owned> };
  readonly kept?: { readonly extension: Extension; readonly snapshot: Found<OwnedSnapshot> };
}

export interface StaleSurvey {
  readonly stale: readonly Stale[];
  readonly unseen: StaleReport['unseen'];
  readonly at: number;
}

type Where = Omit<StaleItem, 'kind' | 'since' | 'age_seconds' | 'evidence'>;

function itemOf({ kind, since, evidence }: StaleFinding, where: Where, now: number): StaleItem {
  const age_seconds = since === null ? null : Math.max(0, Math.floor((now - since) / 1000));
  return { ...where, kind, since: isoTimeOrNull(since), age_seconds, evidence: [...evidence] };
}

async function recordsOf(tx: Tx, deps: ControlPorts, workspaceId: string | null, now: number) {
  const ending = await tx.sandboxes.list({ workspaceId, states: ENDING, limit: MOST });
  const overdue = await tx.sandboxes.dueDeadlines(now - deps.settings.teardownTimeoutMs, MOST);
  const rows = new Map([...ending.items, ...overdue].map((row) => [row.uid, row]));
  return [...rows.values()].filter((row) => workspaceId === null || row.workspaceId === workspaceId);
}

async function staleRecords(
  deps: ControlPorts,
  workspaceId: string | null,
  now: number,
): Promise<readonly Stale[]> {
  return deps.store.read('stale-records', async (tx) => {
    const found: Stale[] = [];
    for (const row of await recordsOf(tx, deps, workspaceId, now)) {
      const attempts = await tx.attempts.forSandbox(row.uid);
      const finding = staleRecord(row, attempts, now, deps.settings.teardownTimeoutMs);
      if (finding === null) continue;
      const last = attempts.at(-1);
      const where = {
        what: row.id,
        workspace: row.workspaceId,
        extension: row.extensionId ?? last?.extensionId ?? null,
        host: row.hostId ?? last?.hostId ?? null,
        owner: deps.owner,
      };
      found.push({ item: itemOf(finding, where, now), since: finding.since, row });
    }
    return found;
  });
}

async function leftovers(
  deps: ControlPorts,
  extension: Extension,
  now: number,
  signal: AbortSignal,
): Promise<Omit<StaleSurvey, 'at'>> {
  const id = extension.header.id;
  try {
    const ours = await ownedEverywhere(deps, extension, signal);
    const others = await unownedEverywhere(deps, extension, signal);
    const kept = await snapshotsEverywhere(deps, extension, signal);
    const stale: Stale[] = [];
    for (const owned of ours.all) {
      const one = await leftOver(deps, extension, owned, now);
      if (one !== null) stale.push(one);
    }
    for (const snapshot of kept.all) {
      const one = await leftSnapshot(deps, extension, snapshot, now);
      if (one !== null) stale.push(one);
    }
    for (const one of others.all) {
      const finding = staleUnowned(one);
      const where = { what: one.what, workspace: null, extension: id, host: one.hostId, owner: one.owner };
      stale.push({ item: itemOf(finding, where, now), since: finding.since });
    }
    const unseen = new Map([...ours.unseen, ...others.unseen, ...kept.unseen]);
    return { stale, unseen: [...unseen].map(([host, detail]) => ({ extension: id, host, detail })) };
  } catch (error) {
    signal.throwIfAborted();
    const detail = error instanceof SandboxerError ? error.detail : 'It could not be looked at.';
    return { stale: [], unseen: [{ extension: id, host: null, detail }] };
  }
}

async function leftOver(
  deps: ControlPorts,
  extension: Extension,
  owned: Found<Owned>,
  now: number,
): Promise<Stale | null> {
  const { attemptId, sandboxUid, owner } = owned.stamp;
  return deps.store.read('left-over', async (tx) => {
    if (await tx.canaries.get(attemptId)) return null;
    const row = await tx.sandboxes.get(sandboxUid);
    const finding = staleOwned(owned, await tx.attempts.get(attemptId), row);
    if (finding === null) return null;
    const where = {
      what: row?.id ?? attemptId,
      workspace: row?.workspaceId ?? null,
      extension: extension.header.id,
      host: owned.hostId,
      owner,
    };
    return { item: itemOf(finding, where, now), since: finding.since, found: { extension, owned } };
  });
}

async function leftSnapshot(
  deps: ControlPorts,
  extension: Extension,
  snapshot: Found<OwnedSnapshot>,
  now: number,
): Promise<Stale | null> {
  const { snapshotId, hostId } = snapshot;
  const row = await deps.store.read('left-snapshot', (tx) => tx.snapshots.get(snapshotId));
  const finding = staleSnapshot(deps.owner, snapshot, row);
  if (finding === null) return null;
  const where = {
    what: `snapshot ${snapshotId}`,
    workspace: row?.workspaceId ?? null,
    extension: extension.header.id,
    host: hostId,
    owner: deps.owner,
  };
  return { item: itemOf(finding, where, now), since: finding.since, kept: { extension, snapshot } };
}

/**
 * Finds what is over and still there, with evidence. A caller who may see every workspace also gets objects at the backends that
 * are on no record, and objects that carry a mark like ours of another owner.
 */
export async function findStale(
  control: Control,
  caller: Caller,
  { signal }: { readonly signal: AbortSignal },
): Promise<StaleSurvey> {
  requireScope(caller, 'read');
  const workspaceId = visibleWorkspace(caller);
  const at = control.clock.now();
  const records = await staleRecords(control, workspaceId, at);
  if (workspaceId !== null) return { stale: records, unseen: [], at };
  const looks = await Promise.all(
    control.extensions.all().map((extension) => leftovers(control, extension, at, signal)),
  );
  return {
    stale: [...records, ...looks.flatMap(({ stale }) => stale)],
    unseen: looks.flatMap(({ unseen }) => unseen),
    at,
  };
}
