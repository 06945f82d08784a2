import type { StaleKind } from '../../contract/sandboxes/stale.ts';
import type { SnapshotRecord } from '../assets/snapshot.ts';
import type { Owned, OwnedSnapshot, Unowned } from '../ports/extension.ts';
import type { AttemptRecord } from './attempt.ts';
import type { SandboxRecord } from './sandbox.ts';

/** Why something is stale, and since when. */
export interface StaleFinding {
  readonly kind: StaleKind;
  readonly since: number | null;
  readonly evidence: readonly string[];
}

const iso = (at: number) => new Date(at).toISOString();

function teardownEvidence(attempts: readonly AttemptRecord[]): string[] {
  return attempts
    .filter(({ state }) => state !== 'gone')
    .map(({ attemptId, extensionId, hostId, state, teardownTries, teardownError }) => {
      const where = hostId === null ? extensionId : `${extensionId} on ${hostId}`;
      const tried = teardownTries === 0 ? '' : `, teardown failed ${teardownTries} times`;
      return `${attemptId} is ${state} at ${where}${tried}${teardownError === null ? '' : `: ${teardownError}`}`;
    });
}

/** Judges a row. `patienceMs`: how long its end, or a teardown, may take before it is reported. */
export function staleRecord(
  row: SandboxRecord,
  attempts: readonly AttemptRecord[],
  now: number,
  patienceMs: number,
): StaleFinding | null {
  const left = teardownEvidence(attempts);
  const since = row.stateSince;
  switch (row.state) {
    case 'destroyed':
      return null;
    case 'failed':
      return { kind: 'failed', since, evidence: [row.failure?.detail ?? 'It failed.', ...left] };
    case 'expired':
      return {
        kind: 'expired',
        since: row.deadlineAt,
        evidence: [`its time ended at ${iso(row.deadlineAt)}`, ...left],
      };
    case 'destroying': {
      const failing = attempts.some(({ teardownTries, state }) => teardownTries > 0 && state !== 'gone');
      if (!failing && now - since < patienceMs) return null;
      return { kind: 'half-destroyed', since, evidence: [`destroying since ${iso(since)}`, ...left] };
    }
    default:
      if (now - row.deadlineAt < patienceMs) return null;
      return {
        kind: 'expired',
        since: row.deadlineAt,
        evidence: [`its time ended at ${iso(row.deadlineAt)} and it is still ${row.state}`, ...left],
      };
  }
}

function partsOf({ parts }: { readonly parts?: readonly string[] }): string[] {
  return parts === undefined || parts.length === 0 ? [] : [`there: ${parts.join(', ')}`];
}

/** Judges an object that carries our mark: it is stale when its attempt is settled as gone, or was never on record. */
export function staleOwned(
  owned: Owned,
  attempt: AttemptRecord | null,
  row: SandboxRecord | null,
): StaleFinding | null {
  const { owner, attemptId } = owned.stamp;
  if (attempt === null) {
    const evidence = [`marked by us (${owner}) as ${attemptId}, which is not on record`, ...partsOf(owned)];
    return { kind: 'orphaned', since: owned.createdAt, evidence };
  }
  // An object that is being torn down is reported with its record.
  if (attempt.state !== 'gone') return null;
  const destroyed = row?.state === 'destroyed' ? `, the sandbox destroyed since ${iso(row.stateSince)}` : '';
  return {
    kind: 'half-destroyed',
    since: row?.state === 'destroyed' ? row.stateSince : owned.createdAt,
    evidence: [`on record ${attemptId} is gone${destroyed}`, ...partsOf(owned)],
  };
}

/** A snapshot that carries our mark, and is over: deleted, or never on record. */
export function staleSnapshot(
  owner: string,
  snapshot: OwnedSnapshot,
  row: SnapshotRecord | null,
): StaleFinding | null {
  const { snapshotId, createdAt } = snapshot;
  if (row === null) {
    const evidence = [`marked by us (${owner}) as ${snapshotId}, which is not on record`];
    return { kind: 'orphaned', since: createdAt, evidence: [...evidence, ...partsOf(snapshot)] };
  }
  // A snapshot that is marked for deletion is left to the sweep.
  if (row.state !== 'deleted') return null;
  const since = row.deletedAt ?? createdAt;
  const evidence = [
    `on record ${snapshotId} is deleted${row.deletedAt ? ` since ${iso(row.deletedAt)}` : ''}`,
  ];
  return { kind: 'half-destroyed', since, evidence: [...evidence, ...partsOf(snapshot)] };
}

export function staleUnowned(unowned: Unowned): StaleFinding {
  const whose =
    unowned.owner === null ? 'its mark names no owner' : `marked by another installation, ${unowned.owner}`;
  return { kind: 'unknown-owner', since: unowned.createdAt, evidence: [whose, ...partsOf(unowned)] };
}
