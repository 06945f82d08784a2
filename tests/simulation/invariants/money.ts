import type { Price } from '../../../src/contract/money/money.ts';
import type { MeterRecord } from '../../../src/core/credits/meter.ts';
import type { SandboxRecord } from '../../../src/core/lifecycle/sandbox.ts';
import { billedMs } from '../../../src/extensions/saas-stub/world/world-object.ts';
import { priceNamed } from '../catalogue.ts';
import type { Mirror } from '../mirror.ts';
import { lives } from '../mirror.ts';
import type { AppliedCommit, AuditContext } from './audit-context.ts';

const ESTABLISHED: ReadonlySet<string> = new Set(['ready', 'active', 'paused']);
const PICO_MS_PER_MICRO_S = 1_000_000_000n;

/** What one generation of one sandbox should cost, worked out from its states alone. */
interface Bill {
  readonly holdId: string;
  readonly runningRate: bigint;
  readonly pausedRate: bigint;
  readonly feeMicroUsd: number;
  readonly minimumMs: bigint;
  rate: bigint;
  since: number;
  used: bigint;
}

/** What a backend bills for so much time, by the price list alone. */
function mostFor(price: Price, ms: number): number {
  const rate =
    BigInt(price.base_pico_usd_per_second) +
    BigInt(price.vcpu_pico_usd_per_second) +
    BigInt(price.gib_pico_usd_per_second);
  const billed = BigInt(Math.max(Math.ceil(ms), price.minimum_seconds * 1000));
  return price.create_fee_micro_usd + Number((rate * billed) / PICO_MS_PER_MICRO_S);
}

/** The time before it was ready, which is never the customer's. */
function insuredFor(mirror: Mirror, attemptId: string): number {
  return mirror.transfers.get(`${attemptId}:establishment`)?.amountMicroUsd ?? 0;
}

/** At the price of its admission, whatever the backend charges by now. */
function newBill(row: SandboxRecord, mirror: Mirror): Bill {
  const price = priceNamed(mirror.priceVersion(row.uid, row.generation, row.extensionId as string));
  // The profiles of the simulation name no size: one core, one gibibyte.
  const runningRate =
    BigInt(price.base_pico_usd_per_second) +
    BigInt(price.vcpu_pico_usd_per_second) +
    BigInt(price.gib_pico_usd_per_second);
  return {
    holdId: row.holdId as string,
    runningRate,
    pausedRate: price.bills_when_paused ? runningRate : 0n,
    feeMicroUsd: price.create_fee_micro_usd,
    minimumMs: BigInt(price.minimum_seconds) * 1000n,
    rate: runningRate,
    since: row.stateSince,
    used: 0n,
  };
}

export class MoneyInvariants {
  readonly #ctx: AuditContext;
  readonly #bills = new Map<string, Bill>();
  readonly #resolved = new Set<string>();
  readonly #owned = new Set<string>();
  readonly #seenTransfers = new Set<string>();

  constructor(ctx: AuditContext) {
    this.#ctx = ctx;
  }

  onCommit(commit: AppliedCommit): void {
    for (const write of commit.writes) {
      if (write.table === 'transfer') {
        if (this.#seenTransfers.has(write.row.id))
          this.#ctx.fail('transfers-immutable', `${write.row.id} twice`);
        this.#seenTransfers.add(write.row.id);
        const { holdId, debit, credit, amountMicroUsd } = write.row;
        if (!Number.isSafeInteger(amountMicroUsd) || amountMicroUsd <= 0) {
          this.#ctx.fail('ledger-balances', `${write.row.id} moves ${amountMicroUsd}`);
        }
        this.#checkBalance(debit);
        this.#checkBalance(credit);
        if (holdId !== null && this.#resolved.has(holdId)) {
          this.#ctx.fail(
            'hold-resolved-once',
            `${write.row.id} moves money of a resolved hold (${commit.label})`,
          );
        }
      }
    }
    const holds = commit.writes.flatMap((write) => (write.table === 'hold' ? [write.row.id] : []));
    for (const id of new Set(holds)) this.#checkHold(id, commit.label);
    for (const write of commit.writes) {
      if (write.table === 'meter') this.#checkMeters(write.row.sandboxUid, commit.label);
      if (write.table === 'hold') this.#checkOwner(write.row.sandboxUid, commit.label);
    }
    for (const [uid, row] of commit.after) {
      this.#follow(commit.before.get(uid), row, commit.label);
      this.#checkOwner(uid, commit.label);
      this.#checkMeters(uid, commit.label);
    }
  }

  /** When the sandbox began to be paid for on this attempt. */
  #openedAt(attemptId: string): number | null {
    return this.#ctx.mirror.meters.get(`meter-${attemptId}`)?.openedAt ?? null;
  }

  /**
   * What a backend has billed by its own clock is covered: by what was charged and is reserved while somebody pays for it,
   * and otherwise by the one stretch that it was made for. A backend that lies about the time is not held to it.
   */
  onTime(): void {
    const { mirror, worlds, scheduler, scenario } = this.#ctx;
    for (const [extensionId, world] of worlds) {
      for (const object of world.objects()) {
        if (object.skewMs !== 0) continue;
        const attempt = mirror.attempts.get(object.name);
        const row = attempt === undefined ? undefined : mirror.sandboxes.get(attempt.sandboxUid);
        const opened = this.#openedAt(object.name);
        // It vanished, and a repeated message made it anew: what it does then is not what anybody asked for.
        if (opened !== null && object.createdAt > opened) continue;
        if (attempt === undefined) continue;
        const price = priceNamed(mirror.priceVersion(attempt.sandboxUid, attempt.generation, extensionId));
        const bill = mostFor(price, billedMs(object, scheduler.now));
        const owned = lives(row) && attempt?.state !== 'condemned' && row?.generation === attempt?.generation;
        const hold = mirror.holds.get(row?.holdId as string);
        const stretchMs = scenario.settings.fundMs + scenario.settings.deadManGraceMs;
        const covered =
          owned && hold !== undefined && hold.state === 'open'
            ? hold.heldMicroUsd + hold.capturedMicroUsd + insuredFor(mirror, object.name)
            : this.#everCovered(object.name, mostFor(price, stretchMs));
        if (covered !== null && bill > covered)
          this.#ctx.fail('spend-is-covered', `${object.name} was billed ${bill}, ${covered} are held`);
        if (owned) this.#owned.add(object.name);
      }
    }
  }

  /** What was paid for in several stretches and is being removed now: each of them was covered when it was paid for. */
  #everCovered(name: string, oneStretch: number): number | null {
    return this.#owned.has(name) ? null : oneStretch;
  }

  /** Everything from the transfers themselves, against what the store answers. */
  async atRest(balanceOf: (account: string) => Promise<number>): Promise<void> {
    const { mirror } = this.#ctx;
    let total = 0;
    for (const [account, balance] of mirror.balances) {
      total += balance;
      const stored = await balanceOf(account);
      if (stored !== balance)
        this.#ctx.fail('ledger-balances', `${account}: ${stored} stored, ${balance} by transfers`);
    }
    if (total !== 0) this.#ctx.fail('ledger-balances', `all accounts sum to ${total}`);
    const held = new Map<string, number>();
    for (const hold of mirror.holds.values()) {
      const left = mirror.held.get(hold.id) ?? 0;
      held.set(hold.workspaceId, (held.get(hold.workspaceId) ?? 0) + left);
    }
    for (const [workspaceId, sum] of held) {
      const balance = mirror.balances.get(`liab:held:${workspaceId}`) ?? 0;
      if (balance !== sum)
        this.#ctx.fail('ledger-balances', `liab:held:${workspaceId} is ${balance}, its holds ${sum}`);
    }
  }

  #checkBalance(account: string): void {
    const balance = this.#ctx.mirror.balances.get(account) ?? 0;
    const mayOwe = /^(asset:|expense:|budget:quota:)/.test(account);
    if (!mayOwe && balance < 0) this.#ctx.fail('balances-not-negative', `${account} is ${balance}`);
  }

  #checkHold(id: string, label: string): void {
    const { mirror } = this.#ctx;
    const hold = mirror.holds.get(id);
    if (hold === undefined) return;
    if (this.#resolved.has(id))
      this.#ctx.fail('hold-resolved-once', `${id} is written after it was resolved (${label})`);
    const left = mirror.held.get(id) ?? 0;
    if (hold.heldMicroUsd !== left || hold.capturedMicroUsd !== (mirror.captured.get(id) ?? 0)) {
      this.#ctx.fail(
        'projections-are-true',
        `${id} says ${hold.heldMicroUsd} and ${hold.capturedMicroUsd}, its transfers ${left} (${label})`,
      );
    }
    if (hold.state === 'open') return;
    this.#resolved.add(id);
    if (left !== 0)
      this.#ctx.fail('hold-resolved-once', `${id} is ${hold.state} with ${left} left (${label})`);
    const captured = mirror.captured.get(id) ?? 0;
    if (hold.state === 'voided' && captured !== 0)
      this.#ctx.fail('failed-is-free', `${id} is voided, ${captured} taken`);
  }

  /** No hold without a living owner. */
  #checkOwner(uid: string, label: string): void {
    const { mirror } = this.#ctx;
    const row = mirror.sandboxes.get(uid);
    for (const hold of mirror.holdRows(uid)) {
      if (hold.state !== 'open') continue;
      const living = lives(row) && row?.generation === hold.generation;
      const awaited = row?.state === 'destroying' && row.recreating && hold.generation === row.generation + 1;
      if (!living && !awaited)
        this.#ctx.fail('hold-has-living-owner', `${hold.id} is open, ${uid} is ${row?.state} (${label})`);
    }
    if (row !== undefined && lives(row) && mirror.holds.get(row.holdId as string)?.state !== 'open') {
      this.#ctx.fail('living-has-hold', `${uid} is ${row.state} without an open hold (${label})`);
    }
  }

  /** One open meter while established, at the rate of the state; none otherwise. One per generation, ever. */
  #checkMeters(uid: string, label: string): void {
    const { mirror } = this.#ctx;
    const row = mirror.sandboxes.get(uid);
    const meters = mirror.meterRows(uid);
    const generations = new Set<number>();
    const open: MeterRecord[] = [];
    for (const meter of meters) {
      if (generations.has(meter.generation))
        this.#ctx.fail('one-charge-per-generation', `${uid} g${meter.generation} (${label})`);
      generations.add(meter.generation);
      if (meter.closedAt === null) open.push(meter);
    }
    const established = row !== undefined && ESTABLISHED.has(row.state);
    const [first] = open;
    if (!established && first !== undefined) {
      this.#ctx.fail('no-open-meter-on-the-dead', `${first.id} is open, ${uid} is ${row?.state} (${label})`);
    }
    if (!established || row === undefined) return;
    if (open.length !== 1 || first?.id !== row.meterId || first.generation !== row.generation) {
      this.#ctx.fail(
        'established-is-metered',
        `${uid} is ${row.state} with ${open.length} open meters (${label})`,
      );
    } else if (first.rate !== (row.state === 'paused' ? first.pausedRate : first.runningRate)) {
      this.#ctx.fail(
        'established-is-metered',
        `${uid} is ${row.state} and metered at ${first.rate} (${label})`,
      );
    }
  }

  #follow(before: SandboxRecord | undefined, row: SandboxRecord, label: string): void {
    const was = before !== undefined && ESTABLISHED.has(before.state);
    const is = ESTABLISHED.has(row.state);
    if (!was && is) this.#bills.set(row.uid, newBill(row, this.#ctx.mirror));
    const bill = this.#bills.get(row.uid);
    if (!was || bill === undefined) return;
    // Nobody owes for time after the deadline, nor for time that the backend did not confirm.
    const funded = this.#ctx.mirror.meters.get(before.meterId as string)?.fundedUntil ?? before.deadlineAt;
    const until = Math.min(row.stateSince, before.deadlineAt, funded);
    if (before.state !== row.state && is) {
      accrue(bill, until);
      const rate = row.state === 'paused' ? bill.pausedRate : bill.runningRate;
      // A part of the time before a pause or a resume that is not owed then is never owed.
      if (rate !== bill.rate) bill.since = Math.max(bill.since, row.stateSince);
      bill.rate = rate;
    }
    if (is) return;
    accrue(bill, until);
    this.#bills.delete(row.uid);
    this.#checkCharge(row.uid, bill, label);
  }

  #checkCharge(uid: string, bill: Bill, label: string): void {
    const { mirror } = this.#ctx;
    const minimum = bill.runningRate * bill.minimumMs;
    const owed = bill.used > minimum ? bill.used : minimum;
    const expected = bill.feeMicroUsd + Number(owed / PICO_MS_PER_MICRO_S);
    const captured = mirror.captured.get(bill.holdId) ?? 0;
    if (captured !== expected) {
      this.#ctx.fail(
        'charge-is-exact',
        `${uid} was charged ${captured} of ${bill.holdId}, owes ${expected} (${label})`,
      );
    }
  }
}

function accrue(bill: Bill, until: number): void {
  if (until <= bill.since) return;
  bill.used += bill.rate * BigInt(until - bill.since);
  bill.since = until;
}
