import type { LedgerAudit } from '../../contract/money/credits.ts';
import { ledgerOf, mayBeNegative } from '../../core/credits/accounts.ts';
import { BudgetAudit } from '../../core/credits/budget-audit.ts';
import { checkBilledTime } from '../../core/credits/ledger/billed-time.ts';
import { checkStranded } from '../../core/credits/ledger/stranded.ts';
import { cumulativeMicroUsd } from '../../core/credits/meter.ts';
import type { TransferRecord } from '../../core/credits/transfer.ts';
import { CHAIN_START, chainHash } from '../../core/credits/transfer.ts';
import { isEstablished, isLiving } from '../../core/lifecycle/lifecycle.ts';
import { isoTime } from '../../core/ports/clock.ts';
import type { Tx } from '../../core/ports/store/store.ts';
import type { Caller } from '../../core/tenancy/caller.ts';
import { requireScope } from '../../core/tenancy/caller.ts';
import type { ControlPorts } from '../ports/control-ports.ts';

const PAGE = 1_000;
const MOST_FINDINGS = 200;

type Finding = LedgerAudit['findings'][number];

/** Adds up the transfers again, independent of the sums that are stored beside them. */
class Replay {
  readonly findings: Finding[] = [];
  readonly balances = new Map<string, number>();
  readonly held = new Map<string, number>();
  readonly captured = new Map<string, number>();
  /** The sandboxes that money was ever reserved or owed for. */
  readonly sandboxes = new Set<string>();
  readonly budgets = new BudgetAudit((budgetId, detail) => this.find('I12', budgetId, detail));
  count = 0;
  head = CHAIN_START;

  find(invariant: string, subject: string, detail: string): void {
    if (this.findings.length < MOST_FINDINGS) this.findings.push({ invariant, subject, detail });
  }

  add(transfer: TransferRecord): void {
    const { id, seq, debit, credit, amountMicroUsd, hash, holdId, kind, priceVersion } = transfer;
    if (transfer.sandboxUid !== null) this.sandboxes.add(transfer.sandboxUid);
    this.count += 1;
    if (seq !== this.count) this.find('I10', id, `Transfer ${this.count} is missing.`);
    // Rows from before there was a chain have no hash.
    if (hash !== '' && hash !== chainHash(this.head, transfer))
      this.find('I10', id, 'The chain of hashes is broken here.');
    if (hash === '' && this.head !== CHAIN_START) this.find('I10', id, 'It has no hash.');
    this.head = hash;
    if (ledgerOf(debit) !== ledgerOf(credit)) this.find('I1', id, `It goes from ${debit} to ${credit}.`);
    addTo(this.balances, debit, -amountMicroUsd);
    addTo(this.balances, credit, amountMicroUsd);
    for (const account of [debit, credit]) {
      const balance = this.balances.get(account) as number;
      if (balance < 0 && !mayBeNegative(account)) this.find('I2', account, `It was ${balance} after ${id}.`);
    }
    if (kind === 'capture' && hash !== '' && priceVersion === null)
      this.find('I11', id, 'The charge names no price version.');
    this.budgets.add(transfer);
    if (holdId === null) return;
    if (kind === 'hold') addTo(this.held, holdId, amountMicroUsd);
    if (kind === 'capture' || kind === 'release') addTo(this.held, holdId, -amountMicroUsd);
    if (kind === 'capture') addTo(this.captured, holdId, amountMicroUsd);
    if ((this.held.get(holdId) ?? 0) < 0) this.find('I3', holdId, `${id} takes more than was held.`);
  }
}

function addTo(sums: Map<string, number>, key: string, amount: number): void {
  sums.set(key, (sums.get(key) ?? 0) + amount);
}

async function checkBalances(tx: Tx, replay: Replay): Promise<number> {
  const kept = await tx.ledger.balances();
  const totals = { money: 0, budget: 0, memo: 0 };
  for (const { account, balance } of kept) {
    totals[ledgerOf(account)] += balance;
    const sum = replay.balances.get(account) ?? 0;
    if (sum !== balance) replay.find('I1', account, `${balance} is kept, the transfers add up to ${sum}.`);
    replay.balances.delete(account);
  }
  for (const [account, sum] of replay.balances)
    if (sum !== 0) replay.find('I1', account, `Nothing is kept, the transfers add up to ${sum}.`);
  for (const [name, total] of Object.entries(totals))
    if (total !== 0) replay.find('I1', name, `The ledger sums to ${total}.`);
  return kept.length;
}

/** Checks that every open hold belongs to a living sandbox, and has the amount that its transfers add up to. */
async function checkHolds(tx: Tx, replay: Replay): Promise<ReadonlySet<string>> {
  const open = new Set<string>();
  for (let after: string | null = null; ; ) {
    const page = await tx.ledger.openHolds(after, PAGE);
    for (const hold of page) {
      open.add(hold.id);
      const left = replay.held.get(hold.id) ?? 0;
      if (left !== hold.heldMicroUsd)
        replay.find('I3', hold.id, `${hold.heldMicroUsd} is kept, ${left} are held.`);
      const sandbox = await tx.sandboxes.get(hold.sandboxUid);
      const owned =
        sandbox !== null &&
        ((isLiving(sandbox.state) && sandbox.generation === hold.generation) ||
          (sandbox.recreating && hold.generation === sandbox.generation + 1));
      if (!owned)
        replay.find('I4', hold.id, `It is open and ${hold.sandboxUid} is ${sandbox?.state ?? 'gone'}.`);
    }
    if (page.length < PAGE) break;
    after = page.at(-1)?.id ?? null;
  }
  for (const [holdId, left] of replay.held)
    if (left !== 0 && !open.has(holdId)) replay.find('I3', holdId, `It is resolved with ${left} left.`);
  return open;
}

/** Checks that every open meter belongs to an established sandbox, is paid for, and charged no more than it counted. */
async function checkMeters(
  tx: Tx,
  deps: ControlPorts,
  replay: Replay,
  openHolds: ReadonlySet<string>,
): Promise<number> {
  let count = 0;
  const metered = new Set<string>();
  const now = deps.clock.now();
  for (let after: string | null = null; ; ) {
    const page = await tx.meters.open(after, PAGE);
    for (const meter of page) {
      count += 1;
      const sandbox = await tx.sandboxes.get(meter.sandboxUid);
      if (!sandbox || !isEstablished(sandbox.state) || sandbox.meterId !== meter.id)
        replay.find('I4', meter.id, `It is open and ${meter.sandboxUid} is ${sandbox?.state ?? 'gone'}.`);
      if (metered.has(meter.holdId))
        replay.find('I7', meter.id, `Another meter charges ${meter.holdId}, too.`);
      metered.add(meter.holdId);
      if (!openHolds.has(meter.holdId))
        replay.find('I9', meter.id, `It is open and ${meter.holdId} is resolved.`);
      const captured = replay.captured.get(meter.holdId) ?? 0;
      if (captured !== meter.chargedMicroUsd)
        replay.find('I6', meter.id, `It says ${meter.chargedMicroUsd}, ${captured} were captured.`);
      if (meter.chargedMicroUsd > cumulativeMicroUsd(meter, now))
        replay.find('I6', meter.id, `It charged ${meter.chargedMicroUsd}, more than it counted.`);
      const latest = (sandbox?.deadlineAt ?? now) + deps.settings.deadManGraceMs;
      if (meter.fundedUntil !== null && meter.fundAt === null && meter.fundedUntil > latest)
        replay.find('I8', meter.id, 'Its backend ends it later than it is paid for.');
    }
    if (page.length < PAGE) return count;
    after = page.at(-1)?.id ?? null;
  }
}

/** Adds up all transfers again, and compares the sums with the stored ones and with the living sandboxes. */
export async function auditLedger(deps: ControlPorts, caller: Caller): Promise<LedgerAudit> {
  requireScope(caller, 'server');
  return deps.store.read('ledger-audit', async (tx) => {
    const replay = new Replay();
    for (let after = 0; ; ) {
      const page = await tx.ledger.transfers({ workspaceId: null, after, limit: PAGE });
      for (const transfer of page) replay.add(transfer);
      if (page.length < PAGE) break;
      after = page.at(-1)?.seq ?? after;
    }
    const openHolds = await checkHolds(tx, replay);
    replay.budgets.finish(openHolds);
    const openMeters = await checkMeters(tx, deps, replay, openHolds);
    const accounts = await checkBalances(tx, replay);
    await checkStranded(tx, (account, detail) => replay.find('I14', account, detail));
    const findTime = (meterId: string, detail: string) => replay.find('I13', meterId, detail);
    for (const uid of replay.sandboxes) await checkBilledTime(tx, uid, deps.clock.now(), findTime);
    return {
      checked_at: isoTime(deps.clock.now()),
      transfers: replay.count,
      accounts,
      open_holds: openHolds.size,
      open_meters: openMeters,
      head: replay.head,
      findings: replay.findings,
    };
  });
}
