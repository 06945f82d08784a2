import type { EventType } from '../../../contract/events/event.ts';
import type { Consumer } from '../../../contract/sandboxes/sandbox.ts';
import type { Actor, SandboxState } from '../../../contract/values/state.ts';
import type { EventDraft } from '../../../core/events/event.ts';
import { assertMove, isEstablished, isLiving } from '../../../core/lifecycle/lifecycle.ts';
import type { SandboxRecord } from '../../../core/lifecycle/sandbox.ts';
import { pendingOperation } from '../../../core/lifecycle/sandbox.ts';
import type { Tx } from '../../../core/ports/store/store.ts';
import { learnUse } from '../../money/learn-use.ts';
import { billOf, closeMoney } from '../../money/sandbox-money.ts';
import type { ControlPorts } from '../../ports/control-ports.ts';
import { abandonSnapshot } from '../../snapshots/abandon-snapshot.ts';

/** The caller that caused an event. Workers act as automation on the consumer's behalf. */
export interface Attribution {
  readonly actor: Actor;
  readonly consumer?: Consumer;
}

export const AUTOMATION: Attribution = { actor: 'atm' };

type Patch = Partial<
  Omit<SandboxRecord, 'uid' | 'state' | 'stateSince' | 'version' | 'eventSeq' | 'workspaceId'>
>;

/** A change to one sandbox being put together: the row and its events, written by one `saveEdit`. */
export class SandboxEdit {
  readonly before: SandboxRecord;
  readonly isNew: boolean;
  readonly now: number;
  #row: SandboxRecord;
  #events: EventDraft[] = [];
  readonly #nextId: (prefix: string) => string;

  constructor(before: SandboxRecord, deps: ControlPorts, now: number, isNew = false) {
    this.before = before;
    this.#row = before;
    this.now = now;
    this.isNew = isNew;
    this.#nextId = (prefix) => deps.ids.next(prefix);
  }

  get row(): SandboxRecord {
    return this.#row;
  }

  get events(): readonly EventDraft[] {
    return this.#events;
  }

  patch(patch: Patch): void {
    this.#row = { ...this.#row, ...patch };
  }

  /** Moves the sandbox along the state table, or throws. Work that follows becomes due now. */
  move(to: SandboxState, by: Attribution, details: Record<string, unknown> = {}): void {
    assertMove(this.#row.state, to);
    const from = this.#row.state;
    const needsWork = !isEstablished(to) && to !== 'destroyed';
    this.#row = {
      ...this.#row,
      state: to,
      stateSince: this.now,
      workDueAt: needsWork ? this.now : to === 'destroyed' ? null : this.#row.workDueAt,
    };
    this.#append(`sandbox.${to}`, by, details, from);
  }

  /** Tells something that is not a transition. */
  note(type: EventType, by: Attribution, details: Record<string, unknown> = {}): void {
    this.#append(type, by, details, this.#row.state);
  }

  /** The first event of a new sandbox. */
  announce(by: Attribution, details: Record<string, unknown>): void {
    this.#append('sandbox.requested', by, details, null);
  }

  #append(
    type: EventType,
    by: Attribution,
    details: Record<string, unknown>,
    previous: SandboxState | null,
  ): void {
    const row = this.#row;
    this.#row = { ...row, eventSeq: row.eventSeq + 1 };
    this.#events.push({
      id: this.#nextId('evt'),
      at: this.now,
      type,
      workspaceId: row.workspaceId,
      subject: row.uid,
      subjectSeq: row.eventSeq + 1,
      sandboxUid: row.uid,
      sandboxId: row.id,
      generation: row.generation,
      state: row.state,
      previousState: previous,
      actor: by.actor,
      consumer: by.consumer ?? row.consumer,
      details,
    });
  }

  #cancelled(): SandboxRecord['operation'] {
    const pending = pendingOperation(this.#row);
    if (!pending) return this.#row.operation;
    const error = {
      code: 'SBX_CANCELLED',
      detail: `The sandbox became ${this.#row.state} before ${pending.kind} was done.`,
    };
    return { ...pending, finishedAt: this.now, error };
  }

  /** Derives the fields that follow from the state alone, so that no caller can forget them. */
  settle(): void {
    const row = this.#row;
    const living = isLiving(row.state);
    const idles = isEstablished(row.state) && row.state !== 'paused' && row.idleReapSeconds !== null;
    const since = row.lastActivityAt ?? row.readyAt ?? row.createdAt;
    this.#row = {
      ...row,
      reuseKey: living ? row.reuseKey : null,
      operation: living ? row.operation : this.#cancelled(),
      pauseKind: row.state === 'paused' ? row.pauseKind : null,
      idleDeadlineAt: idles ? since + (row.idleReapSeconds as number) * 1000 : null,
    };
  }
}

/**
 * Writes row, events and money in the caller's transaction. Closes the meter and resolves the hold of a sandbox that stops
 * living, whatever the cause.
 */
export async function saveEdit(tx: Tx, deps: ControlPorts, edit: SandboxEdit): Promise<SandboxRecord> {
  const { before } = edit;
  edit.settle();
  const stopsLiving =
    isLiving(before.state) && (!isLiving(edit.row.state) || edit.row.generation !== before.generation);
  if (stopsLiving && !edit.isNew) {
    const meter = await closeMoney({ tx, deps, at: edit.now }, before);
    if (meter) learnUse(deps, meter);
    if (meter && meter.priceVersion !== 'free') edit.note('sandbox.billed', AUTOMATION, billOf(meter));
    const snapshotId = pendingOperation(before)?.snapshotId;
    if (snapshotId) await abandonSnapshot(tx, deps, snapshotId, edit.now);
  }
  const stored = edit.isNew ? edit.row : await tx.sandboxes.update(edit.row);
  if (edit.isNew) await tx.sandboxes.insert(edit.row);
  await tx.events.append(edit.events);
  return stored;
}
