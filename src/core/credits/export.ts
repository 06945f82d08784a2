import type { ChargeDetails, ExportFormat } from '../../contract/money/credits.ts';

/** The columns that FOCUS 1.2 makes mandatory, in its own order, followed by our own columns. */
const FOCUS_COLUMNS = [
  'BilledCost',
  'BillingAccountId',
  'BillingAccountName',
  'BillingCurrency',
  'BillingPeriodEnd',
  'BillingPeriodStart',
  'ChargeCategory',
  'ChargeClass',
  'ChargeDescription',
  'ChargePeriodEnd',
  'ChargePeriodStart',
  'ContractedCost',
  'EffectiveCost',
  'InvoiceIssuerName',
  'ListCost',
  'PricingQuantity',
  'PricingUnit',
  'ProviderName',
  'PublisherName',
  'ServiceCategory',
  'ServiceName',
  'x_Actor',
  'x_ApiKeyId',
  'x_Evidence',
  'x_PriceVersion',
  'x_Profile',
  'x_RunId',
  'x_SandboxId',
  'x_TransferId',
] as const;

const ISSUER = 'sand-boxer';
const DAY_MS = 86_400_000;

/** A decimal number of dollars, exact to the millionth. */
function decimalUsd(microUsd: number): string {
  const digits = String(Math.abs(microUsd)).padStart(7, '0');
  return `${microUsd < 0 ? '-' : ''}${digits.slice(0, -6)}.${digits.slice(-6)}`;
}

/** Returns the amount that a charge adds to the bill: negative for a correction. */
export function signedMicroUsd({ kind, amount_micro_usd: amount }: ChargeDetails): number {
  return kind === 'correction' ? -amount : amount;
}

/** A spreadsheet runs what begins like a formula; a number may. */
function csvCell(value: string): string {
  const safe = /^[=+\-@\t\r]/.test(value) && !/^-?\d+(\.\d+)?$/.test(value) ? `'${value}` : value;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

function monthOf(at: number): readonly [string, string] {
  const day = new Date(at);
  const [year, month] = [day.getUTCFullYear(), day.getUTCMonth()];
  return [
    new Date(Date.UTC(year, month, 1)).toISOString(),
    new Date(Date.UTC(year, month + 1, 1)).toISOString(),
  ];
}

function focusRow(charge: ChargeDetails): string {
  const at = Date.parse(charge.at);
  const midnight = Math.floor(at / DAY_MS) * DAY_MS;
  const [monthStart, monthEnd] = monthOf(at);
  const cost = decimalUsd(signedMicroUsd(charge));
  const cells: Record<(typeof FOCUS_COLUMNS)[number], string> = {
    BilledCost: cost,
    BillingAccountId: charge.workspace_id,
    BillingAccountName: charge.workspace_id,
    BillingCurrency: 'USD',
    BillingPeriodEnd: monthEnd,
    BillingPeriodStart: monthStart,
    ChargeCategory: 'Usage',
    ChargeClass: charge.kind === 'correction' ? 'Correction' : '',
    ChargeDescription: `Sandbox ${charge.sandbox_id} on ${charge.extension}`,
    ChargePeriodEnd: new Date(midnight + DAY_MS).toISOString(),
    ChargePeriodStart: new Date(midnight).toISOString(),
    ContractedCost: cost,
    EffectiveCost: cost,
    InvoiceIssuerName: ISSUER,
    ListCost: cost,
    PricingQuantity: cost,
    PricingUnit: 'Credits',
    ProviderName: charge.extension,
    PublisherName: ISSUER,
    ServiceCategory: 'Compute',
    ServiceName: 'Sandboxes',
    x_Actor: charge.actor,
    x_ApiKeyId: charge.key_id ?? '',
    x_Evidence: charge.evidence,
    x_PriceVersion: charge.price_version ?? '',
    x_Profile: charge.profile,
    x_RunId: charge.run_id ?? '',
    x_SandboxId: charge.sandbox_id,
    x_TransferId: charge.transfer_id,
  };
  return FOCUS_COLUMNS.map((column) => csvCell(cells[column])).join(',');
}

function cloudEvent(charge: ChargeDetails, source: string): string {
  return JSON.stringify({
    specversion: '1.0',
    id: charge.transfer_id,
    source,
    type: charge.kind === 'correction' ? 'sandboxer.usage.corrected' : 'sandboxer.usage.charged',
    subject: charge.sandbox_id,
    time: charge.at,
    datacontenttype: 'application/json',
    data: { ...charge, amount_micro_usd: signedMicroUsd(charge) },
  });
}

/** Writes charges as text: the same charges always give the same bytes. */
export function exportText(
  format: ExportFormat,
  charges: readonly ChargeDetails[],
  source: string,
  isFirstPage: boolean,
): string {
  const lines =
    format === 'focus'
      ? [...(isFirstPage ? [FOCUS_COLUMNS.join(',')] : []), ...charges.map(focusRow)]
      : charges.map((charge) => cloudEvent(charge, source));
  return lines.map((line) => `${line}\n`).join('');
}
