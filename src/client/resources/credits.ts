import type {
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
} from '../../contract/money/credits.ts';
import type { Balance, GrantRequest, Transfer } from '../../contract/money/money.ts';
import { PagedList } from '../transport/paged-list.ts';
import { queryOf } from '../transport/path-of.ts';
import type { CallOptions, Transport } from '../transport/transport.ts';
import type { InputOf, OutputOf } from './schema-types.ts';

export type CreditBalance = OutputOf<typeof Balance>;
export type CreditTransfer = OutputOf<typeof Transfer>;

export type BudgetSpec = InputOf<typeof CreateBudgetRequest>;

/** Text that a date is read from; thirty days up to now when left out. */
export interface Span {
  readonly from?: string;
  readonly to?: string;
}

export class Credits {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  balance(options: CallOptions = {}): Promise<CreditBalance> {
    return this.#transport.json({ ...options, method: 'GET', path: '/v1/credits' });
  }

  /** A repeated `reference` is the same grant. */
  grant(request: InputOf<typeof GrantRequest>, options: CallOptions = {}): Promise<CreditBalance> {
    return this.#transport.json({ ...options, method: 'POST', path: '/v1/credits/grants', json: request });
  }

  usage(query: Span & { readonly by?: UsageBy } = {}, options: CallOptions = {}): Promise<UsageReport> {
    return this.#transport.json({
      ...options,
      method: 'GET',
      path: `/v1/credits/usage${queryOf({ ...query })}`,
    });
  }

  /** Returns the text of a whole export, page by page. */
  async *export(
    query: Span & { readonly format?: ExportFormat; readonly limit?: number } = {},
    options: CallOptions = {},
  ): AsyncGenerator<CreditExport> {
    let cursor: string | undefined;
    do {
      const path = `/v1/credits/export${queryOf({ ...query, ...(cursor === undefined ? {} : { cursor }) })}`;
      const page: CreditExport = await this.#transport.json({ ...options, method: 'GET', path });
      yield page;
      cursor = page.next_cursor ?? undefined;
    } while (cursor !== undefined);
  }

  audit(options: CallOptions = {}): Promise<LedgerAudit> {
    return this.#transport.json({ ...options, method: 'GET', path: '/v1/credits/audit' });
  }

  reconcile(
    request: InputOf<typeof ReconcileRequest> = {},
    options: CallOptions = {},
  ): Promise<ReconcileReport> {
    return this.#transport.json({ ...options, method: 'POST', path: '/v1/credits/reconcile', json: request });
  }

  limits(options: CallOptions = {}): Promise<CreditLimits> {
    return this.#transport.json({ ...options, method: 'GET', path: '/v1/credits/limits' });
  }

  setLimits(limits: CreditLimits, options: CallOptions = {}): Promise<CreditLimits> {
    return this.#transport.json({ ...options, method: 'PUT', path: '/v1/credits/limits', json: limits });
  }

  async budgets(options: CallOptions = {}): Promise<readonly Budget[]> {
    const { items } = await this.#transport.json<{ items: readonly Budget[] }>({
      ...options,
      method: 'GET',
      path: '/v1/budgets',
    });
    return items;
  }

  createBudget(budget: BudgetSpec, options: CallOptions = {}): Promise<Budget> {
    return this.#transport.json({ ...options, method: 'POST', path: '/v1/budgets', json: budget });
  }

  async deleteBudget(budgetId: string, options: CallOptions = {}): Promise<void> {
    await this.#transport.json({
      ...options,
      method: 'DELETE',
      path: `/v1/budgets/${encodeURIComponent(budgetId)}`,
    });
  }

  setOrgCredits(orgId: string, credits: OrgCredits, options: CallOptions = {}): Promise<OrgCredits> {
    const path = `/v1/orgs/${encodeURIComponent(orgId)}/credits`;
    return this.#transport.json({ ...options, method: 'PUT', path, json: credits });
  }

  /** Compares the cost of our own hosts with the price of the same use elsewhere. */
  hosts(span: Span = {}, options: CallOptions = {}): Promise<HostCostReport> {
    return this.#transport.json({
      ...options,
      method: 'GET',
      path: `/v1/credits/hosts${queryOf({ ...span })}`,
    });
  }

  transfers(
    query: { readonly limit?: number; readonly order?: 'oldest' | 'newest' } = {},
    options: CallOptions = {},
  ): PagedList<CreditTransfer> {
    return new PagedList(this.#transport, '/v1/credits/transfers', { ...query }, options);
  }
}
