import type {
  ChargeDetails,
  CreditExport,
  ExportFormat,
  UsageBy,
  UsageReport,
} from '../../contract/money/credits.ts';
import { exportText, signedMicroUsd } from '../../core/credits/export.ts';
import type { MeterRecord } from '../../core/credits/meter.ts';
import type { TransferRecord } from '../../core/credits/transfer.ts';
import { CHARGE_KINDS } from '../../core/credits/transfer.ts';
import { isoTime } from '../../core/ports/clock.ts';
import type { Tx } from '../../core/ports/store/store.ts';
import type { Caller } from '../../core/tenancy/caller.ts';
import { requireScope } from '../../core/tenancy/caller.ts';
import type { ControlPorts } from '../ports/control-ports.ts';
import { ownMachines } from './report-host-costs.ts';

export interface Span {
  readonly from: number;
  readonly to: number;
}

const PAGE = 1_000;

/** Joins charges with their spenders. A sandbox has few meters, and its charges come close together. */
class Attribution {
  readonly #tx: Tx;
  readonly #meters = new Map<string, readonly MeterRecord[]>();

  constructor(tx: Tx) {
    this.#tx = tx;
  }

  async of(transfer: TransferRecord): Promise<ChargeDetails> {
    const meter = await this.#meterOf(transfer);
    return {
      transfer_id: transfer.id,
      at: isoTime(transfer.at),
      workspace_id: transfer.workspaceId,
      kind: transfer.kind === 'correction' ? 'correction' : 'capture',
      amount_micro_usd: transfer.amountMicroUsd,
      extension: meter?.extensionId ?? '',
      price_version: transfer.priceVersion,
      sandbox_id: meter?.sandboxId ?? transfer.sandboxUid ?? '',
      profile: meter?.profileId ?? '',
      actor: (meter?.actor ?? '') as ChargeDetails['actor'],
      key_id: meter?.keyId ?? null,
      run_id: meter?.runId ?? null,
      linked_to: transfer.linkedTo,
      evidence: 'own_clock',
    };
  }

  async #meterOf({ sandboxUid, holdId }: TransferRecord): Promise<MeterRecord | undefined> {
    if (sandboxUid === null) return undefined;
    let meters = this.#meters.get(sandboxUid);
    if (meters === undefined) {
      meters = await this.#tx.meters.forSandbox(sandboxUid);
      this.#meters.set(sandboxUid, meters);
    }
    return meters.find((meter) => meter.holdId === holdId) ?? meters.at(-1);
  }
}

function nameFor(by: UsageBy, charge: ChargeDetails): string {
  const names: Record<UsageBy, string | null> = {
    day: charge.at.slice(0, 10),
    profile: charge.profile,
    extension: charge.extension,
    actor: charge.actor,
    key: charge.key_id,
    run: charge.run_id,
    sandbox: charge.sandbox_id,
  };
  return names[by] || '-';
}

interface UsageReportRequest {
  readonly by: UsageBy;
  readonly span: Span;
}

/** Adds up the charges of a span by one dimension: days in order, everything else dearest first. */
export async function usageReport(
  deps: ControlPorts,
  caller: Caller,
  { by, span: { from, to } }: UsageReportRequest,
): Promise<UsageReport> {
  requireScope(caller, 'read');
  const { workspaceId } = caller;
  const sums = new Map<string, { charges: number; amount: number }>();
  await deps.store.read('usage', async (tx) => {
    const attribution = new Attribution(tx);
    for (let after = 0; ; ) {
      const page = await tx.ledger.transfers({
        workspaceId,
        kinds: CHARGE_KINDS,
        from,
        to,
        after,
        limit: PAGE,
      });
      for (const transfer of page) {
        const charge = await attribution.of(transfer);
        const sum = sums.get(nameFor(by, charge)) ?? { charges: 0, amount: 0 };
        sums.set(nameFor(by, charge), {
          charges: sum.charges + 1,
          amount: sum.amount + signedMicroUsd(charge),
        });
      }
      if (page.length < PAGE) return;
      after = page.at(-1)?.seq ?? after;
    }
  });
  const items = [...sums].map(([name, { charges, amount }]) => ({ name, charges, amount_micro_usd: amount }));
  items.sort((a, b) =>
    by === 'day'
      ? a.name.localeCompare(b.name)
      : b.amount_micro_usd - a.amount_micro_usd || a.name.localeCompare(b.name),
  );
  const total = items.reduce((sum, { amount_micro_usd: amount }) => sum + amount, 0);
  const own_machines = await ownMachines(deps, caller, { from, to });
  return { by, from: isoTime(from), to: isoTime(to), items, total_micro_usd: total, own_machines };
}

interface ExportCharges {
  readonly format: ExportFormat;
  readonly span: Span;
  readonly after: number;
  readonly limit: number;
}

/** Exports charges for a bill. The pages of a span add up to the ledger, and are the same whenever they are asked for. */
export async function exportCharges(
  deps: ControlPorts,
  caller: Caller,
  { format, span: { from, to }, after, limit }: ExportCharges,
): Promise<CreditExport> {
  requireScope(caller, 'read');
  return deps.store.read('export', async (tx) => {
    const attribution = new Attribution(tx);
    const query = { workspaceId: caller.workspaceId, kinds: CHARGE_KINDS, from, to, after, limit };
    const page = await tx.ledger.transfers(query);
    const charges: ChargeDetails[] = [];
    for (const transfer of page) charges.push(await attribution.of(transfer));
    return {
      format,
      media_type: format === 'focus' ? 'text/csv' : 'application/jsonl',
      charges: charges.length,
      total_micro_usd: charges.reduce((sum, charge) => sum + signedMicroUsd(charge), 0),
      content: exportText(format, charges, `/sand-boxer/${deps.owner}`, after === 0),
      next_cursor: page.length === limit ? String(page.at(-1)?.seq) : null,
    };
  });
}
