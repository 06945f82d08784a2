import { z } from 'zod';
import {
  Budget,
  CreateBudgetRequest,
  CreditExport,
  CreditLimits,
  ExportFormat,
  HostCostReport,
  LedgerAudit,
  OrgCredits,
  ReconcileReport,
  ReconcileRequest,
  UsageBy,
  UsageReport,
} from '../../../contract/money/credits.ts';
import { DateOrTime } from '../../../contract/values/date-or-time.ts';
import { BudgetId, OrgId } from '../../../contract/values/ids.ts';
import { auditLedger } from '../../../control/money/audit-ledger.ts';
import {
  createBudget,
  deleteBudget,
  getLimits,
  listBudgets,
  setLimits,
} from '../../../control/money/budgets.ts';
import { exportCharges, usageReport } from '../../../control/money/credit-reports.ts';
import { setOrgCredits } from '../../../control/money/org-credits.ts';
import { reconcileCredits } from '../../../control/money/reconcile-credits.ts';
import { reportHostCosts } from '../../../control/money/report-host-costs.ts';
import { wholeNumber } from '../../parse/query-schemas.ts';
import { json, jsonBody, nothing, route } from '../../route/route.ts';

const BudgetList = z.strictObject({ items: z.array(Budget) }).meta({ id: 'BudgetList' });
const tag = 'credits';

const moment = DateOrTime.transform((text) => Date.parse(text));
const DAY_MS = 86_400_000;

const span = {
  from: moment.optional().describe('From this time on; thirty days ago when left out.'),
  to: moment.optional().describe('Before this time; now when left out.'),
};

function spanOf({ from, to }: { from?: number | undefined; to?: number | undefined }, now: number) {
  const end = to ?? now + 1;
  return { from: from ?? end - 30 * DAY_MS, to: end };
}

export const creditControlRoutes = [
  route({
    method: 'GET',
    url: '/v1/credits/usage',
    operationId: 'reportUsage',
    summary: 'Charges, added up by day, profile, extension, actor, key, run or sandbox.',
    tag,
    scope: 'read',
    query: z.strictObject({ by: UsageBy.default('day'), ...span }),
    responses: { 200: json(UsageReport, 'Days in order; everything else dearest first.') },
    async handler({ services, caller, query }) {
      const { control } = services;
      const body = await usageReport(control, caller, {
        by: query.by,
        span: spanOf(query, control.clock.now()),
      });
      return { status: 200, body };
    },
  }),
  route({
    method: 'GET',
    url: '/v1/credits/export',
    operationId: 'exportCredits',
    summary: 'Every charge, as CloudEvents or as FOCUS 1.2. The pages add up to the ledger.',
    tag,
    scope: 'read',
    query: z.strictObject({
      format: ExportFormat.default('cloudevents'),
      ...span,
      cursor: wholeNumber(0, Number.MAX_SAFE_INTEGER)
        .optional()
        .describe('`next_cursor` of the page before.'),
      limit: wholeNumber(1, 10_000).default(1_000),
    }),
    responses: { 200: json(CreditExport, 'A page of charges.') },
    async handler({ services, caller, query }) {
      const { control } = services;
      const period = spanOf(query, control.clock.now());
      const body = await exportCharges(control, caller, {
        format: query.format,
        span: period,
        after: query.cursor ?? 0,
        limit: query.limit,
      });
      return { status: 200, body };
    },
  }),
  route({
    method: 'GET',
    url: '/v1/credits/hosts',
    operationId: 'reportHostCosts',
    summary: 'Cost of own hosts, the used share, and the price of that share elsewhere.',
    tag,
    scope: 'server',
    query: z.strictObject(span),
    responses: { 200: json(HostCostReport, 'By host.') },
    async handler({ services, caller, query }) {
      const { control } = services;
      return {
        status: 200,
        body: await reportHostCosts(control, caller, spanOf(query, control.clock.now())),
      };
    },
  }),
  route({
    method: 'GET',
    url: '/v1/credits/audit',
    operationId: 'auditLedger',
    summary: 'Add the whole ledger up again from its transfers and list every disagreement.',
    tag,
    scope: 'server',
    responses: { 200: json(LedgerAudit, 'No findings: everything agrees.') },
    async handler({ services, caller }) {
      return { status: 200, body: await auditLedger(services.control, caller) };
    },
  }),
  route({
    method: 'POST',
    url: '/v1/credits/reconcile',
    operationId: 'reconcileCredits',
    summary:
      'Compare our meters with what lives, with what backends say was used, and with what they billed.',
    tag,
    scope: 'server',
    body: jsonBody(ReconcileRequest, 'large'),
    responses: { 200: json(ReconcileReport, 'Every difference, by kind.') },
    async handler({ services, caller, body, exchange }) {
      return {
        status: 200,
        body: await reconcileCredits(services.control, caller, { request: body, signal: exchange.signal }),
      };
    },
  }),
  route({
    method: 'GET',
    url: '/v1/credits/limits',
    operationId: 'getLimits',
    summary: 'How many sandboxes the workspace may have and make.',
    tag,
    scope: 'read',
    responses: { 200: json(CreditLimits, 'Its limits.') },
    async handler({ services, caller }) {
      return { status: 200, body: await getLimits(services.control, caller) };
    },
  }),
  route({
    method: 'PUT',
    url: '/v1/credits/limits',
    operationId: 'setLimits',
    summary: 'Set how many sandboxes the workspace may have and make.',
    tag,
    scope: 'credits',
    body: jsonBody(CreditLimits),
    responses: { 200: json(CreditLimits, 'Its limits.') },
    async handler({ services, caller, body }) {
      return { status: 200, body: await setLimits(services.control, caller, body) };
    },
  }),
  route({
    method: 'GET',
    url: '/v1/budgets',
    operationId: 'listBudgets',
    summary: 'The budgets of the workspace and what is left of them.',
    tag,
    scope: 'read',
    responses: { 200: json(BudgetList, 'Its budgets.') },
    async handler({ services, caller }) {
      return { status: 200, body: { items: await listBudgets(services.control, caller) } };
    },
  }),
  route({
    method: 'POST',
    url: '/v1/budgets',
    operationId: 'createBudget',
    summary: 'Limit what may be spent. A budget is hard: what is reserved counts as spent.',
    tag,
    scope: 'credits',
    body: jsonBody(CreateBudgetRequest),
    responses: { 201: json(Budget, 'The budget.') },
    async handler({ services, caller, body }) {
      return { status: 201, body: await createBudget(services.control, caller, body) };
    },
  }),
  route({
    method: 'DELETE',
    url: '/v1/budgets/{budget_id}',
    operationId: 'deleteBudget',
    summary: 'Take a budget away.',
    tag,
    scope: 'credits',
    params: z.strictObject({ budget_id: BudgetId }),
    responses: { 204: nothing('It is gone.') },
    async handler({ services, caller, params }) {
      await deleteBudget(services.control, caller, { id: params.budget_id });
      return { status: 204, body: undefined };
    },
  }),
  route({
    method: 'PUT',
    url: '/v1/orgs/{org_id}/credits',
    operationId: 'setOrgCredits',
    summary:
      'Have the workspaces of an org spend from one purse, or each from its own: split, each gets its share by what it put in.',
    tag,
    scope: 'server',
    params: z.strictObject({ org_id: OrgId }),
    body: jsonBody(OrgCredits),
    responses: { 200: json(OrgCredits, 'How it is now.') },
    async handler({ services, caller, params, body }) {
      return {
        status: 200,
        body: await setOrgCredits(services.control, caller, { orgId: params.org_id, credits: body }),
      };
    },
  }),
];
