import { attemptIdOf } from '../../core/lifecycle/attempt.ts';
import { isEstablished } from '../../core/lifecycle/lifecycle.ts';
import type { SandboxRecord } from '../../core/lifecycle/sandbox.ts';
import { pendingOperation } from '../../core/lifecycle/sandbox.ts';
import type { Extension, Owned } from '../../core/ports/extension.ts';
import { contextFor } from '../backends/backend-context.ts';
import type { Found } from '../backends/look-everywhere.ts';
import { ownedEverywhere, placeName } from '../backends/look-everywhere.ts';
import { within } from '../backends/within.ts';
import type { Control } from '../control.ts';
import { AUTOMATION, SandboxEdit, saveEdit } from '../lifecycle/edit/sandbox-edit.ts';
import { whyEnded } from '../lifecycle/why-ended.ts';
import { changeRate } from '../money/sandbox-money.ts';
import type { ControlPorts } from '../ports/control-ports.ts';

const BATCH = 500;

export interface ReconcileReport {
  readonly listed: number;
  readonly removed: number;
  readonly lost: number;
}

/** Sandboxes whose object was absent at the last sweep: absent twice in a row is lost. */
export type MissingOnce = Set<string>;

/**
 * Compares what a backend has with what we know, both ways. An object whose attempt is over (or was never journalled) is torn
 * down; a sandbox whose object is missing at two sweeps in a row has failed. Attempts are journalled before the backend is
 * called, so an unknown object cannot be one that is just being made.
 */
export async function reconcileExtension(
  control: Control,
  extension: Extension,
  missingOnce: MissingOnce,
  signal: AbortSignal,
): Promise<ReconcileReport> {
  const startedAt = control.clock.now();
  const { all, unseen } = await ownedEverywhere(control, extension, signal);
  const living = all.filter(({ condition }) => condition !== 'ended');
  const present = new Set(living.map(({ stamp }) => stamp.attemptId));
  let removed = 0;
  for (const owned of all) {
    if (await isOrphan(control, owned))
      removed += (await removeOrphan(control, extension, owned, signal)) ? 1 : 0;
  }
  for (const { condition, paused, stamp } of living) {
    if (condition === 'stopped') await noteStopped(control, stamp.sandboxUid, stamp.attemptId, startedAt);
    else if (paused === false) await noteRunning(control, stamp.sandboxUid, stamp.attemptId, startedAt);
  }
  const lost = await failMissing(control, {
    extensionId: extension.header.id,
    present,
    unseen,
    missingOnce,
    startedAt,
  });
  return { listed: present.size, removed, lost };
}

async function isOrphan(deps: ControlPorts, owned: Owned): Promise<boolean> {
  return deps.store.read('orphan', async (tx) => {
    const attempt = await tx.attempts.get(owned.stamp.attemptId);
    if (!attempt) return (await tx.canaries.get(owned.stamp.attemptId)) === null;
    // The driver tears down a condemned attempt. Only an object whose attempt is settled as gone is removed here.
    return attempt.state === 'gone';
  });
}

/** Asks the backend to end an object that is on no record. The stamp is ours: a backend leaves alone what carries another. */
export async function removeOrphan(
  deps: ControlPorts,
  extension: Extension,
  owned: Found<Owned>,
  signal: AbortSignal,
): Promise<boolean> {
  const { stamp, handle, hostId, providerKeyId } = owned;
  try {
    const report = await within(deps, deps.settings.teardownTimeoutMs, signal, async (given) =>
      extension.teardown({ stamp, handle }, await contextFor(deps, hostId, given, providerKeyId)),
    );
    if (!report.gone) return false;
  } catch (error) {
    deps.log.warn(
      { err: error, attempt: stamp.attemptId },
      'an orphan could not be removed; it will be tried again',
    );
    return false;
  }
  await deps.store.transaction('orphan-removed', async (tx) => {
    const row = await tx.sandboxes.get(stamp.sandboxUid);
    if (!row) return;
    const edit = new SandboxEdit(row, deps, deps.clock.now());
    edit.note('orphan.removed', AUTOMATION, { extension: extension.header.id, attempt_id: stamp.attemptId });
    await saveEdit(tx, deps, edit);
  });
  return true;
}

interface SeenObjects {
  readonly extensionId: string;
  readonly present: ReadonlySet<string>;
  readonly unseen: ReadonlyMap<string, string>;
  readonly missingOnce: MissingOnce;
  readonly startedAt: number;
}

async function failMissing(
  control: Control,
  { extensionId, present, unseen, missingOnce, startedAt }: SeenObjects,
): Promise<number> {
  let lost = 0;
  let after: string | null = null;
  const missingNow = new Set<string>();
  for (;;) {
    const rows = await control.store.read('established', (tx) =>
      tx.sandboxes.establishedOn(extensionId, after, BATCH),
    );
    for (const row of rows) {
      const attemptId = attemptIdOf(row.uid, row.generation, row.attempt as number);
      if (present.has(attemptId) || (row.readyAt ?? startedAt) >= startedAt) continue;
      if (unseen.size > 0 && (await isHidden(control, row, attemptId, unseen))) continue;
      if (!missingOnce.has(attemptId)) {
        missingNow.add(attemptId);
        continue;
      }
      if (await failLost(control, row)) {
        lost += 1;
        control.driver.interrupt(row.uid);
        void control.driver.drive(row.uid);
      }
    }
    if (rows.length < BATCH) break;
    after = rows.at(-1)?.uid ?? null;
  }
  missingOnce.clear();
  for (const attemptId of missingNow) missingOnce.add(attemptId);
  return lost;
}

/** Whether the attempt lies at a place that did not answer. */
async function isHidden(
  deps: ControlPorts,
  { hostId }: SandboxRecord,
  attemptId: string,
  unseen: ReadonlyMap<string, string>,
): Promise<boolean> {
  const attempt = await deps.store.read('attempt-place', (tx) => tx.attempts.get(attemptId));
  return unseen.has(placeName({ hostId, providerKeyId: attempt?.providerKeyId ?? null }));
}

/** Records a sandbox as paused whose processes are gone and whose disk is not, as after a restart of its machine. */
async function noteStopped(
  deps: ControlPorts,
  uid: string,
  attemptId: string,
  seenAt: number,
): Promise<void> {
  await deps.store.transaction('stopped', async (tx) => {
    const row = await tx.sandboxes.get(uid);
    if (!row || !isEstablished(row.state) || row.attempt === null || row.pauseKind === 'stopped') return;
    const isThisOne = attemptIdOf(uid, row.generation, row.attempt) === attemptId;
    // A change since the backend was asked is newer than the backend's answer.
    if (!isThisOne || row.stateSince >= seenAt || pendingOperation(row)) return;
    const edit = new SandboxEdit(row, deps, deps.clock.now());
    edit.patch({ pauseKind: 'stopped' });
    const details = { pause_kind: 'stopped', reason: 'its backend stopped it and kept its disk' };
    if (row.state === 'paused') edit.note('sandbox.stopped', AUTOMATION, details);
    else {
      edit.move('paused', AUTOMATION, details);
      await changeRate({ tx, deps, at: edit.now }, row, true);
    }
    await saveEdit(tx, deps, edit);
  });
}

/**
 * Records a sandbox as running that the row says is paused: the answer to a resume was lost. From then on it is paid for as
 * running.
 */
async function noteRunning(
  deps: ControlPorts,
  uid: string,
  attemptId: string,
  seenAt: number,
): Promise<void> {
  const believed = await deps.store.read('paused', (tx) => tx.sandboxes.get(uid));
  if (believed?.state !== 'paused') return;
  await deps.store.transaction('running', async (tx) => {
    const row = await tx.sandboxes.get(uid);
    if (row?.state !== 'paused' || row.pauseKind === 'stopped' || row.attempt === null) return;
    const isThisOne = attemptIdOf(uid, row.generation, row.attempt) === attemptId;
    // A change since the backend was asked is newer than the backend's answer.
    if (!isThisOne || row.stateSince >= seenAt || pendingOperation(row)) return;
    const edit = new SandboxEdit(row, deps, deps.clock.now());
    edit.patch({ lastActivityAt: edit.now });
    edit.move('active', AUTOMATION, { reason: 'its backend runs it' });
    await changeRate({ tx, deps, at: edit.now }, row, false);
    await saveEdit(tx, deps, edit);
  });
}

async function failLost(deps: ControlPorts, seen: SandboxRecord): Promise<boolean> {
  const { uid, generation } = seen;
  const reason = await whyEnded(deps, seen);
  return deps.store.transaction('lost', async (tx) => {
    const row = await tx.sandboxes.get(uid);
    if (!row || row.generation !== generation || !isEstablished(row.state)) return false;
    const now = deps.clock.now();
    const edit = new SandboxEdit(row, deps, now);
    const { code, detail, remedy } = reason ?? {
      code: 'SBX_BACKEND_LOST' as const,
      detail: `${row.extensionId} no longer has this sandbox.`,
      remedy: 'Recreate the sandbox, or create a new one.',
    };
    edit.patch({ failure: { code, detail, remedy, at: now } });
    edit.move('failed', AUTOMATION, { code, detail });
    for (const attempt of await tx.attempts.forSandbox(uid)) {
      if (attempt.state === 'won') await tx.attempts.update({ ...attempt, state: 'condemned' });
    }
    await saveEdit(tx, deps, edit);
    return true;
  });
}
