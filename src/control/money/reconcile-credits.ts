import type { ReconcileReport, ReconcileRequest } from '../../contract/money/credits.ts';
import { accounts } from '../../core/credits/accounts.ts';
import type { MeterRecord } from '../../core/credits/meter.ts';
import { observed } from '../../core/credits/meter.ts';
import type { TransferRecord } from '../../core/credits/transfer.ts';
import { isEstablished } from '../../core/lifecycle/lifecycle.ts';
import type { SandboxRecord } from '../../core/lifecycle/sandbox.ts';
import { isoTime } from '../../core/ports/clock.ts';
import type { Extension, Handle } from '../../core/ports/extension.ts';
import type { Tx } from '../../core/ports/store/store.ts';
import type { Caller } from '../../core/tenancy/caller.ts';
import { requireScope } from '../../core/tenancy/caller.ts';
import { contextOf } from '../backends/backend-context.ts';
import { ownedEverywhere } from '../backends/look-everywhere.ts';
import { within } from '../backends/within.ts';
import type { ControlPorts } from '../ports/control-ports.ts';
import { auditedTransaction } from '../requests/audit.ts';
import type { Span } from './credit-reports.ts';

const PAGE = 500;
/** Our clock and the backend's may differ by this much over a life: starting and stopping take time. */
const SLACK_MS = 30_000;

type Item = ReconcileReport['items'][number];

interface ReconcileCredits {
  readonly request: ReconcileRequest;
  readonly signal: AbortSignal;
}

/**
 * Three ways: our meters against what lives, against what the backends themselves say was used, and against what they
 * billed. Nothing is written unless corrections are asked for.
 */
export async function reconcileCredits(
  deps: ControlPorts,
  caller: Caller,
  { request, signal }: ReconcileCredits,
): Promise<ReconcileReport> {
  requireScope(caller, 'server');
  const items = [
    ...(await openMeters(deps, signal)),
    ...(await foreignObjects(deps, signal)),
    ...(await compareInvoice(deps, caller, request)),
  ];
  const counts: Record<string, number> = {};
  for (const { kind } of items) counts[kind] = (counts[kind] ?? 0) + 1;
  return { checked_at: isoTime(deps.clock.now()), items, counts };
}

function item(kind: Item['kind'], extension: string, sandbox: string, detail: string): Item {
  return { kind, extension, sandbox, detail, ours_micro_usd: null, theirs_micro_usd: null, correction: null };
}

async function openMeters(deps: ControlPorts, signal: AbortSignal): Promise<Item[]> {
  const items: Item[] = [];
  for (let after: string | null = null; ; ) {
    const page: readonly MeterRecord[] = await deps.store.read('open-meters', (tx) =>
      tx.meters.open(after, PAGE),
    );
    for (const meter of page) {
      const sandbox = await deps.store.read('open-meters', (tx) => tx.sandboxes.get(meter.sandboxUid));
      if (!sandbox || !isEstablished(sandbox.state)) {
        const detail = `The meter is open and the sandbox is ${sandbox?.state ?? 'gone'}.`;
        items.push(item('open_meter', meter.extensionId, meter.sandboxUid, detail));
        continue;
      }
      const extension = deps.extensions.get(meter.extensionId);
      if (!extension?.usage || sandbox.handle === null) continue;
      const drift = await usageDrift(deps, { extension, meter, sandbox, signal });
      if (drift !== null) items.push(item('meter_drift', meter.extensionId, meter.sandboxUid, drift));
    }
    if (page.length < PAGE) return items;
    after = page.at(-1)?.id ?? null;
  }
}

interface MeteredSandbox {
  readonly extension: Extension;
  readonly meter: MeterRecord;
  readonly sandbox: SandboxRecord;
  readonly signal: AbortSignal;
}

/** Stores with the meter what the backend says it billed: better evidence than our own clock. */
async function usageDrift(
  deps: ControlPorts,
  { extension, meter, sandbox, signal }: MeteredSandbox,
): Promise<string | null> {
  const askedAt = deps.clock.now();
  let backendMs: number;
  try {
    const { billedSeconds } = await within(deps, deps.settings.operationTimeoutMs, signal, async (given) =>
      (extension.usage as NonNullable<Extension['usage']>)(
        sandbox.handle as Handle,
        await contextOf(deps, sandbox, given),
      ),
    );
    backendMs = Math.round(billedSeconds * 1000);
  } catch (error) {
    return `The backend did not tell its usage: ${error instanceof Error ? error.message : 'unknown'}`;
  }
  const stored = await deps.store.transaction('usage-evidence', async (tx) => {
    const now = await tx.meters.get(meter.id);
    if (!now || now.closedAt !== null) return null;
    const next = observed(now, backendMs, askedAt);
    await tx.meters.update(next);
    return next;
  });
  if (stored === null) return null;
  const runningMs = stored.rate > 0n ? Math.max(0, deps.clock.now() - stored.since) : 0;
  const oursMs = stored.billedMs + runningMs;
  if (Math.abs(oursMs - backendMs) <= SLACK_MS) return null;
  return `We counted ${Math.round(oursMs / 1000)} s, the backend ${Math.round(backendMs / 1000)} s.`;
}

async function foreignObjects(deps: ControlPorts, signal: AbortSignal): Promise<Item[]> {
  const items: Item[] = [];
  for (const extension of deps.extensions.all()) {
    const { id } = extension.header;
    try {
      await within(deps, deps.settings.operationTimeoutMs, signal, async (given) => {
        for (const { stamp } of (await ownedEverywhere(deps, extension, given)).all) {
          const attempt = await deps.store.read('foreign', (tx) => tx.attempts.get(stamp.attemptId));
          if (attempt !== null && attempt.state !== 'gone') continue;
          const why = attempt === null ? 'no request of this server made it' : 'it was settled as gone';
          items.push(item('foreign', id, stamp.sandboxUid, `${stamp.attemptId} exists, and ${why}.`));
        }
      });
    } catch (error) {
      deps.log.warn({ err: error, extension: id }, 'a backend did not list what it has');
    }
  }
  return items;
}

async function compareInvoice(
  deps: ControlPorts,
  caller: Caller,
  request: ReconcileRequest,
): Promise<readonly Item[]> {
  if (request.invoice.length === 0) return [];
  const work = (tx: Tx) => compareIn(tx, deps, request);
  if (!request.apply) return deps.store.read('invoice', work);
  const subject = {
    action: 'reconcileCredits',
    target: 'invoice',
    details: { lines: request.invoice.length },
  };
  return auditedTransaction(deps, caller, { label: 'invoice', subject }, work);
}

async function compareIn(tx: Tx, deps: ControlPorts, request: ReconcileRequest): Promise<readonly Item[]> {
  const billed = new Map<string, number>();
  for (const { extension, sandbox, amount_micro_usd: amount } of request.invoice) {
    const key = `${extension}\n${sandbox}`;
    billed.set(key, (billed.get(key) ?? 0) + amount);
  }
  const owed = await costsOf(tx, billed, spanOf(request));
  const items: Item[] = [];
  const compared = new Map([...[...owed.keys()].map((key) => [key, 0] as const), ...billed]);
  for (const [key, theirs] of compared) {
    const [extension = '', sandbox = ''] = key.split('\n');
    const costs = owed.get(key) ?? [];
    const ours = costs.reduce((sum, { amountMicroUsd }) => sum + amountMicroUsd, 0);
    const within = Math.abs(theirs - ours) * 100 <= request.tolerance_percent * Math.max(ours, theirs);
    const kind = !billed.has(key)
      ? 'not_billed'
      : costs.length === 0
        ? 'foreign'
        : within
          ? 'match'
          : theirs > ours
            ? 'billed_more'
            : 'billed_less';
    // The debt was corrected before: nothing is owed any more.
    if (kind === 'not_billed' && ours === 0) continue;
    const last = costs.at(-1);
    const corrects = request.apply && last !== undefined && theirs !== ours;
    const correction = corrects
      ? await correctCost(tx, deps, last, { extension, difference: theirs - ours })
      : null;
    if (request.apply && costs.length > 0 && billed.has(key)) await settleEvidence(tx, extension, sandbox);
    const detail = detailOf(kind, theirs - ours);
    items.push({
      kind,
      extension,
      sandbox,
      ours_micro_usd: ours,
      theirs_micro_usd: theirs,
      detail,
      correction,
    });
  }
  return items;
}

function detailOf(kind: Item['kind'], apart: number): string {
  if (kind === 'foreign') return 'We know of no use of this.';
  return kind === 'not_billed'
    ? `The invoice leaves out what we owe ${-apart} µ$ for.`
    : `${apart} µ$ apart.`;
}

function spanOf({ from, to }: ReconcileRequest): Span | null {
  return from === undefined || to === undefined ? null : { from: Date.parse(from), to: Date.parse(to) };
}

/** Marks the closed meters of a sandbox as exact: the backend's own bill is the best evidence. */
async function settleEvidence(tx: Tx, extensionId: string, sandboxUid: string): Promise<void> {
  for (const meter of await tx.meters.forSandbox(sandboxUid))
    if (meter.extensionId === extensionId && meter.closedAt !== null)
      await tx.meters.update({ ...meter, evidence: 'provider_exact' });
}

/**
 * Returns what we booked as owed, by backend and sandbox: for every billed sandbox, and for all that the billing backends were
 * used for in the span.
 */
async function costsOf(
  tx: Tx,
  billed: ReadonlyMap<string, number>,
  span: Span | null,
): Promise<Map<string, TransferRecord[]>> {
  const billers = new Set([...billed.keys()].map((key) => key.split('\n')[0]));
  const isIn = ({ at }: TransferRecord) => span !== null && at >= span.from && at < span.to;
  const wanted = new Set(billed.keys());
  const found = new Map<string, TransferRecord[]>();
  for (let after = 0; ; ) {
    const kinds = ['cost', 'insurance', 'hedge'] as const;
    const page = await tx.ledger.transfers({ workspaceId: null, kinds, after, limit: PAGE });
    for (const transfer of page) {
      const extension = accountTail(transfer.credit) ?? accountTail(transfer.debit) ?? '';
      const key = `${extension}\n${transfer.sandboxUid}`;
      if (isIn(transfer) && billers.has(extension)) wanted.add(key);
      const sign = transfer.credit.startsWith('liab:provider:') ? 1 : -1;
      const signed = { ...transfer, amountMicroUsd: sign * transfer.amountMicroUsd };
      found.set(key, [...(found.get(key) ?? []), signed]);
    }
    if (page.length < PAGE) break;
    after = page.at(-1)?.seq ?? after;
  }
  for (const key of found.keys()) if (!wanted.has(key)) found.delete(key);
  return found;
}

function accountTail(account: string): string | null {
  return account.startsWith('liab:provider:') ? account.slice('liab:provider:'.length) : null;
}

interface Correction {
  readonly extension: string;
  readonly difference: number;
}

/** Adjusts our debt to the backend to its bill. The customer's charge is the price that was quoted, and stays. */
async function correctCost(
  tx: Tx,
  deps: ControlPorts,
  last: TransferRecord,
  { extension, difference }: Correction,
): Promise<string> {
  const id = `correction:${deps.ids.next('cor')}`;
  const [expense, debt] = [accounts.providerExpense(extension), accounts.providerDebt(extension)];
  await tx.ledger.transfer([
    {
      id,
      at: deps.clock.now(),
      kind: 'cost',
      debit: difference > 0 ? expense : debt,
      credit: difference > 0 ? debt : expense,
      amountMicroUsd: Math.abs(difference),
      workspaceId: last.workspaceId,
      holdId: null,
      sandboxUid: last.sandboxUid,
      linkedTo: last.id,
      reference: 'invoice',
    },
  ]);
  return id;
}
