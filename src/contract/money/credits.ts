import { z } from 'zod';
import { boundedList } from '../values/bounded.ts';
import { DateOrTime } from '../values/date-or-time.ts';
import type { WorkspaceId } from '../values/ids.ts';
import type { Actor } from '../values/state.ts';
import { MicroUsd } from './money.ts';

const Amount = MicroUsd.min(1).max(1_000_000_000_000);

const BudgetScope = z.enum(['workspace', 'key', 'profile', 'actor', 'run']);
const BudgetPeriod = z.enum(['day', 'week', 'month', 'lifetime']);

const budgetFields = {
  scope: BudgetScope.describe('Scope of the budget. `run` is the run_id of the consumer.'),
  value: z
    .string()
    .min(1)
    .max(256)
    .nullable()
    .default(null)
    .describe('Which key, profile, actor or run; left out, each of them has this much of its own.'),
  period: BudgetPeriod.describe('In UTC: days from midnight, weeks from Monday, months from the first.'),
  limit_micro_usd: Amount,
  throttle_seconds: z
    .number()
    .int()
    .min(1)
    .max(86_400)
    .nullable()
    .default(null)
    .describe('From 80 % on, at most one new sandbox in so many seconds.'),
  own_keys: z
    .boolean()
    .default(false)
    .describe(
      'Whether what runs under a key of your own counts, too, by the price that its vendor lists. Nothing is charged for it.',
    ),
};

export const CreateBudgetRequest = z.strictObject(budgetFields).meta({ id: 'CreateBudgetRequest' });
export type CreateBudgetRequest = z.infer<typeof CreateBudgetRequest>;

export const Budget = z
  .strictObject({
    budget_id: z.string(),
    ...budgetFields,
    value: z.string().nullable(),
    throttle_seconds: z.number().int().nullable(),
    own_keys: z.boolean(),
    created_at: z.string(),
    used: z
      .array(
        z.strictObject({
          name: z.string(),
          spent_micro_usd: MicroUsd,
          held_micro_usd: MicroUsd,
          left_micro_usd: MicroUsd,
        }),
      )
      .describe('In the window that is open now, by whom it counts.'),
    resets_at: z.string().nullable(),
  })
  .meta({ id: 'Budget' });
export type Budget = z.infer<typeof Budget>;

export const CreditLimits = z
  .strictObject({
    max_living: z.number().int().min(0).max(1_000_000).nullable().describe('Living sandboxes at a time.'),
    creates_per_minute: z.number().int().min(0).max(1_000_000).nullable(),
  })
  .meta({ id: 'CreditLimits' });
export type CreditLimits = z.infer<typeof CreditLimits>;

export const OrgCredits = z
  .strictObject({
    mode: z.enum(['shared', 'split']).describe('One purse for all workspaces of the org, or one for each.'),
  })
  .meta({ id: 'OrgCredits' });
export type OrgCredits = z.infer<typeof OrgCredits>;

export const UsageBy = z.enum(['day', 'profile', 'extension', 'actor', 'key', 'run', 'sandbox']);
export type UsageBy = z.infer<typeof UsageBy>;

const OwnMachines = z
  .strictObject({
    sandboxes: z.number().int(),
    total_micro_usd: MicroUsd.describe('Cost of the hosts, used or idle.'),
    elsewhere_micro_usd: MicroUsd.describe('Cost of the same use at the cheapest vendor enabled here.'),
    saved_micro_usd: MicroUsd.describe('Below zero: buying it would have been cheaper.'),
    utilisation: z.number().describe('The share of them that was in use, 0 to 1.'),
    break_even_utilisation: z
      .number()
      .nullable()
      .describe('From this share of use on they are cheaper than buying; above 1: never.'),
  })
  .meta({ id: 'OwnMachines' });
export type OwnMachines = z.infer<typeof OwnMachines>;

export const UsageReport = z
  .strictObject({
    by: UsageBy,
    from: z.string(),
    to: z.string(),
    items: z.array(
      z.strictObject({ name: z.string(), charges: z.number().int(), amount_micro_usd: MicroUsd }),
    ),
    total_micro_usd: MicroUsd,
    own_machines: OwnMachines.nullable().describe(
      'Use of own machines by all workspaces in that time; null without the scope `server`, or where none ran anything.',
    ),
  })
  .meta({ id: 'UsageReport' });
export type UsageReport = z.infer<typeof UsageReport>;

export const ExportFormat = z.enum(['cloudevents', 'focus']);
export type ExportFormat = z.infer<typeof ExportFormat>;

export const CreditExport = z
  .strictObject({
    format: ExportFormat,
    media_type: z.string(),
    charges: z.number().int(),
    total_micro_usd: MicroUsd.describe('Of the charges in this page.'),
    content: z.string().describe('The first page of a CSV begins with its header.'),
    next_cursor: z.string().nullable(),
  })
  .meta({ id: 'CreditExport' });
export type CreditExport = z.infer<typeof CreditExport>;

export const LedgerAudit = z
  .strictObject({
    checked_at: z.string(),
    transfers: z.number().int(),
    accounts: z.number().int(),
    open_holds: z.number().int(),
    open_meters: z.number().int(),
    head: z
      .string()
      .describe('The hash of the last transfer: keep it elsewhere, and nothing before it can be changed.'),
    findings: z.array(z.strictObject({ invariant: z.string(), subject: z.string(), detail: z.string() })),
  })
  .meta({ id: 'LedgerAudit' });
export type LedgerAudit = z.infer<typeof LedgerAudit>;

export const ReconcileRequest = z
  .strictObject({
    invoice: boundedList(
      z
        .array(
          z.strictObject({
            extension: z.string().min(1).max(128),
            sandbox: z.string().min(1).max(128).describe('The uid that its objects carry.'),
            amount_micro_usd: MicroUsd.min(0),
          }),
        )
        .max(10_000),
      10_000,
    )
      .default([])
      .describe('Amounts that the backend billed, by sandbox.'),
    from: DateOrTime.optional().describe(
      'With `to`: the time that the invoice is of. What we used of its backends in it, and it does not name, is `not_billed`.',
    ),
    to: DateOrTime.optional(),
    tolerance_percent: z.number().min(0).max(100).default(1),
    apply: z.boolean().default(false).describe('Write corrections, each linked to what it puts right.'),
  })
  .refine(({ from, to }) => (from === undefined) === (to === undefined), {
    path: ['to'],
    message: 'Give both from and to, or neither.',
  })
  .meta({ id: 'ReconcileRequest' });
export type ReconcileRequest = z.infer<typeof ReconcileRequest>;

const DriftKind = z.enum([
  'match',
  'billed_more',
  'billed_less',
  'not_billed',
  'foreign',
  'open_meter',
  'meter_drift',
]);

export const ReconcileReport = z
  .strictObject({
    checked_at: z.string(),
    items: z.array(
      z.strictObject({
        kind: DriftKind,
        extension: z.string(),
        sandbox: z.string(),
        ours_micro_usd: MicroUsd.nullable(),
        theirs_micro_usd: MicroUsd.nullable(),
        detail: z.string(),
        correction: z.string().nullable().describe('The transfer that was written.'),
      }),
    ),
    counts: z.record(z.string(), z.number().int()),
  })
  .meta({ id: 'ReconcileReport' });
export type ReconcileReport = z.infer<typeof ReconcileReport>;

export const HostCostReport = z
  .strictObject({
    from: z.string(),
    to: z.string(),
    items: z.array(
      z.strictObject({
        host: z.string(),
        cost_micro_usd_per_hour: MicroUsd,
        sandboxes: z.number().int(),
        total_micro_usd: MicroUsd.describe('Since it was registered, at most.'),
        used_micro_usd: MicroUsd,
        idle_micro_usd: MicroUsd.describe('Used and idle add up to the total.'),
        utilisation: z.number().describe('The share of the machine that was in use, 0 to 1.'),
        cheapest_elsewhere: z.string().nullable().describe('The vendor that would have been cheapest.'),
        elsewhere_micro_usd: MicroUsd.nullable().describe('Cost of the same use there.'),
        saved_micro_usd: MicroUsd.nullable().describe('Below zero: buying it would have been cheaper.'),
        break_even_utilisation: z
          .number()
          .nullable()
          .describe('From which share of use on the machine is the cheaper one; above 1 it never is.'),
      }),
    ),
  })
  .meta({ id: 'HostCostReport' });
export type HostCostReport = z.infer<typeof HostCostReport>;

/** A charge with everything that a bill needs, as exports and events carry it. */
export interface ChargeDetails {
  readonly transfer_id: string;
  readonly at: string;
  readonly workspace_id: z.infer<typeof WorkspaceId>;
  readonly kind: 'capture' | 'correction';
  readonly amount_micro_usd: number;
  readonly extension: string;
  readonly price_version: string | null;
  readonly sandbox_id: string;
  readonly profile: string;
  readonly actor: z.infer<typeof Actor> | '';
  readonly key_id: string | null;
  readonly run_id: string | null;
  readonly linked_to: string | null;
  /** A charge is worked out while time passes, by our clock; the use that its backend observed is in the meter. */
  readonly evidence: 'own_clock';
}
