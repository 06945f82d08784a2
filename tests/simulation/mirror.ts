import type { SnapshotRecord } from '../../src/core/assets/snapshot.ts';
import type { MeterRecord } from '../../src/core/credits/meter.ts';
import type { HoldRecord, TransferDraft } from '../../src/core/credits/transfer.ts';
import type { EventRecord } from '../../src/core/events/event.ts';
import type { AttemptRecord } from '../../src/core/lifecycle/attempt.ts';
import type { SandboxDocuments, SandboxRecord } from '../../src/core/lifecycle/sandbox.ts';
import type { IdempotencyRecord } from '../../src/core/ports/store/idempotency-store.ts';
import type { ParkedDelivery } from '../../src/core/ports/store/outbox-store.ts';
import type { AuditDraft } from '../../src/core/tenancy/audit.ts';

/** One change that a transaction made, in the order it made them. */
export type Write =
  | { readonly table: 'sandbox'; readonly row: SandboxRecord }
  | { readonly table: 'attempt'; readonly row: AttemptRecord }
  | { readonly table: 'event'; readonly row: EventRecord }
  | { readonly table: 'transfer'; readonly row: TransferDraft }
  | { readonly table: 'hold'; readonly row: HoldRecord }
  | { readonly table: 'meter'; readonly row: MeterRecord }
  | { readonly table: 'snapshot'; readonly row: SnapshotRecord }
  | { readonly table: 'idempotency'; readonly row: IdempotencyRecord }
  | { readonly table: 'parked'; readonly row: ParkedDelivery }
  | { readonly table: 'unparked'; readonly sinkId: string; readonly seq: number }
  | { readonly table: 'cursor' }
  | { readonly table: 'audit'; readonly row: AuditDraft }
  | { readonly table: 'documents'; readonly row: SandboxDocuments }
  | { readonly table: 'keys-forgotten'; readonly keys: readonly string[] }
  | {
      readonly table: 'forgotten';
      readonly sandboxes: readonly string[];
      readonly keptEvents: ReadonlySet<number>;
    };

const LIVING: ReadonlySet<string> = new Set(['requested', 'provisioning', 'ready', 'active', 'paused']);

export function lives(row: SandboxRecord | undefined): boolean {
  return row !== undefined && LIVING.has(row.state);
}

/** What the committed writes add up to, kept apart from the store that holds them. */
export class Mirror {
  readonly sandboxes = new Map<string, SandboxRecord>();
  readonly attempts = new Map<string, AttemptRecord>();
  readonly attemptsOf = new Map<string, Set<string>>();
  readonly holds = new Map<string, HoldRecord>();
  readonly holdsOf = new Map<string, Set<string>>();
  readonly meters = new Map<string, MeterRecord>();
  readonly metersOf = new Map<string, Set<string>>();
  readonly snapshots = new Map<string, SnapshotRecord>();
  /** The price version that each generation of each sandbox was admitted at, by `uid generation extension`. */
  readonly priceVersions = new Map<string, string>();
  readonly idempotency = new Map<string, IdempotencyRecord>();
  /** By number; forgotten ones are taken out. */
  readonly events = new Map<number, EventRecord>();
  readonly transfers = new Map<string, TransferDraft>();
  readonly balances = new Map<string, number>();
  /** What is still reserved, and what was captured, under each hold. */
  readonly held = new Map<string, number>();
  readonly captured = new Map<string, number>();
  readonly parked = new Map<string, ParkedDelivery>();
  readonly living = new Map<string, number>();
  /** Rows that something may still happen to. */
  readonly unfinished = new Map<string, SandboxRecord>();

  apply(writes: readonly Write[]): void {
    for (const write of writes) this.#applyOne(write);
  }

  attemptRows(uid: string): AttemptRecord[] {
    return [...(this.attemptsOf.get(uid) ?? [])].map((id) => this.attempts.get(id) as AttemptRecord);
  }

  holdRows(uid: string): HoldRecord[] {
    return [...(this.holdsOf.get(uid) ?? [])].map((id) => this.holds.get(id) as HoldRecord);
  }

  meterRows(uid: string): MeterRecord[] {
    return [...(this.metersOf.get(uid) ?? [])].map((id) => this.meters.get(id) as MeterRecord);
  }

  #applyOne(write: Write): void {
    switch (write.table) {
      case 'sandbox':
        this.#putSandbox(write.row);
        break;
      case 'attempt':
        this.attempts.set(write.row.attemptId, write.row);
        addTo(this.attemptsOf, write.row.sandboxUid, write.row.attemptId);
        break;
      case 'event':
        this.events.set(write.row.seq, write.row);
        break;
      case 'transfer':
        this.#transfer(write.row);
        break;
      case 'hold':
        this.holds.set(write.row.id, write.row);
        addTo(this.holdsOf, write.row.sandboxUid, write.row.id);
        break;
      case 'meter':
        this.meters.set(write.row.id, write.row);
        addTo(this.metersOf, write.row.sandboxUid, write.row.id);
        break;
      case 'documents':
        this.#notePrices(write.row);
        break;
      case 'snapshot':
        this.snapshots.set(write.row.id, write.row);
        break;
      case 'idempotency':
        this.idempotency.set(`${write.row.workspaceId}\n${write.row.key}`, write.row);
        break;
      case 'parked':
        this.parked.set(`${write.row.sinkId}\n${write.row.seq}`, write.row);
        break;
      case 'unparked':
        this.parked.delete(`${write.sinkId}\n${write.seq}`);
        break;
      case 'keys-forgotten':
        for (const key of write.keys) this.idempotency.delete(key);
        break;
      case 'forgotten':
        for (const uid of write.sandboxes) this.#forget(uid);
        for (const seq of [...this.events.keys()]) if (!write.keptEvents.has(seq)) this.events.delete(seq);
        break;
      default:
        break;
    }
  }

  priceVersion(uid: string, generation: number, extensionId: string): string {
    return this.priceVersions.get(`${uid} ${generation} ${extensionId}`) ?? 'unknown';
  }

  #notePrices({ uid, generation, plan }: SandboxDocuments): void {
    for (const { extension, quote } of plan.candidates)
      if (quote) this.priceVersions.set(`${uid} ${generation} ${extension}`, quote.price_version);
  }

  #putSandbox(row: SandboxRecord): void {
    const change = Number(lives(row)) - Number(lives(this.sandboxes.get(row.uid)));
    if (change !== 0) this.living.set(row.workspaceId, (this.living.get(row.workspaceId) ?? 0) + change);
    this.sandboxes.set(row.uid, row);
    if (row.state === 'destroyed') this.unfinished.delete(row.uid);
    else this.unfinished.set(row.uid, row);
  }

  #transfer(row: TransferDraft): void {
    const { debit, credit, amountMicroUsd: amount, holdId } = row;
    this.transfers.set(row.id, row);
    this.balances.set(debit, (this.balances.get(debit) ?? 0) - amount);
    this.balances.set(credit, (this.balances.get(credit) ?? 0) + amount);
    if (holdId === null) return;
    const change =
      (credit.startsWith('liab:held:') ? amount : 0) - (debit.startsWith('liab:held:') ? amount : 0);
    this.held.set(holdId, (this.held.get(holdId) ?? 0) + change);
    if (row.kind === 'capture') this.captured.set(holdId, (this.captured.get(holdId) ?? 0) + amount);
  }

  #forget(uid: string): void {
    this.sandboxes.delete(uid);
    for (const id of this.attemptsOf.get(uid) ?? []) this.attempts.delete(id);
    this.attemptsOf.delete(uid);
  }
}

function addTo(sets: Map<string, Set<string>>, key: string, value: string): void {
  const set = sets.get(key);
  if (set === undefined) sets.set(key, new Set([value]));
  else set.add(value);
}
