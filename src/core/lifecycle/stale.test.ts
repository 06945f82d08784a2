import { describe, expect, it } from 'vitest';
import { sampleAttempt, sampleSandbox, sampleSnapshot, T0 } from '../../store/suite/sample-records.ts';
import { staleOwned, staleRecord, staleSnapshot, staleUnowned } from './stale.ts';

const PATIENCE = 120_000;
const owned = {
  stamp: { owner: 'us', sandboxUid: 's', attemptId: 's-g1-a1' },
  handle: null,
  createdAt: T0,
  parts: ['container x', 'network y'],
};

describe('stale objects', () => {
  it('a stale record is over, failed, or does not get on with its end', () => {
    const later = T0 + PATIENCE;
    const row = (state: Parameters<typeof sampleSandbox>[0]) =>
      sampleSandbox({ stateSince: T0, deadlineAt: T0 + 10, ...state });
    const kind = (state: object, attempts: Parameters<typeof staleRecord>[1] = [], now = later) =>
      staleRecord(row(state), attempts, now, PATIENCE)?.kind ?? null;
    expect(kind({ state: 'expired' })).toBe('expired');
    expect(kind({ state: 'failed' })).toBe('failed');
    expect(kind({ state: 'destroyed' })).toBeNull();
    expect(kind({ state: 'ready' }, [], T0 + 11)).toBeNull();
    expect(kind({ state: 'ready' }, [], later + 10)).toBe('expired');
    // A teardown is given time, unless it has failed already.
    expect(kind({ state: 'destroying' }, [], T0 + 1)).toBeNull();
    expect(kind({ state: 'destroying' }, [], later)).toBe('half-destroyed');
    const failing = sampleAttempt('s', { state: 'condemned', teardownTries: 1, teardownError: 'no route' });
    expect(kind({ state: 'destroying' }, [failing], T0 + 1)).toBe('half-destroyed');
    const { evidence } = staleRecord(row({ state: 'destroying' }), [failing], T0 + 1, PATIENCE) ?? {};
    expect(evidence?.join(' ')).toMatch(/teardown failed 1 times: no route/);
  });

  it('an object with our mark is stale only if no record answers for it', () => {
    expect(staleOwned(owned, null, null)).toMatchObject({ kind: 'orphaned', since: T0 });
    for (const state of ['journalled', 'provisioned', 'won', 'condemned'] as const)
      expect(staleOwned(owned, sampleAttempt('s', { state }), null)).toBeNull();
    const gone = staleOwned(
      owned,
      sampleAttempt('s', { state: 'gone' }),
      sampleSandbox({ state: 'destroyed', stateSince: T0 + 5 }),
    );
    expect(gone).toMatchObject({ kind: 'half-destroyed', since: T0 + 5 });
    expect(gone?.evidence.at(-1)).toBe('there: container x, network y');
  });

  it('a snapshot with our mark is stale if it was deleted or never on record', () => {
    const kept = { snapshotId: 'snap_1', createdAt: T0, parts: ['image x'] };
    expect(staleSnapshot('us', kept, null)).toMatchObject({ kind: 'orphaned', since: T0 });
    for (const state of ['creating', 'available', 'deleting'] as const)
      expect(staleSnapshot('us', kept, sampleSnapshot('snap_1', { state }))).toBeNull();
    const deleted = sampleSnapshot('snap_1', { state: 'deleted', deletedAt: T0 + 5 });
    const finding = staleSnapshot('us', kept, deleted);
    expect(finding).toMatchObject({ kind: 'half-destroyed', since: T0 + 5 });
    expect(finding?.evidence.at(-1)).toBe('there: image x');
  });

  it('an object with another mark is named and nothing else', () => {
    const one = { owner: 'them', what: 'x', parts: [], createdAt: null };
    expect(staleUnowned(one)).toEqual({
      kind: 'unknown-owner',
      since: null,
      evidence: ['marked by another installation, them'],
    });
    expect(staleUnowned({ ...one, owner: null }).evidence).toEqual(['its mark names no owner']);
  });
});
