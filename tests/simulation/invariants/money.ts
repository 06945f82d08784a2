import type { MeterRecord } from '../../../src/core/meter.ts';
import type { SandboxRecord } from '../../../src/core/sandbox.ts';
import { PRICES } from '../catalogue.ts';
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

function newBill(row: SandboxRecord): Bill {
  const price = PRICES[row.extensionId as string];
  if (price === undefined) throw new Error(`no price for ${row.extensionId}`);
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
    for (const write of commit.writes)
      if (write.table === 'hold') this.#checkHold(write.row.id, commit.label);
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
      const balance = mirror.balances.get(`held:${workspaceId}`) ?? 0;
      if (balance !== sum)
        this.#ctx.fail('ledger-balances', `held:${workspaceId} is ${balance}, its holds ${sum}`);
    }
  }

  #checkBalance(account: string): void {
    const balance = this.#ctx.mirror.balances.get(account) ?? 0;
    const mayOwe = account === 'external';
    if (!mayOwe && balance < 0) this.#ctx.fail('balances-not-negative', `${account} is ${balance}`);
  }

  #checkHold(id: string, label: string): void {
    const { mirror } = this.#ctx;
    const hold = mirror.holds.get(id);
    if (hold === undefined) return;
    if (this.#resolved.has(id))
      this.#ctx.fail('hold-resolved-once', `${id} is written after it was resolved (${label})`);
    if (hold.state === 'open') return;
    this.#resolved.add(id);
    const left = mirror.held.get(id) ?? 0;
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
    if (!was && is) this.#bills.set(row.uid, newBill(row));
    const bill = this.#bills.get(row.uid);
    if (!was || bill === undefined) return;
    // Nobody owes for time after the deadline.
    const until = Math.min(row.stateSince, before.deadlineAt);
    if (before.state !== row.state && is) {
      accrue(bill, until);
      bill.rate = row.state === 'paused' ? bill.pausedRate : bill.runningRate;
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
