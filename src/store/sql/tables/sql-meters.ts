import type { Kysely } from 'kysely';
import { sql } from 'kysely';
import type { MeterRecord } from '../../../core/credits/meter.ts';
import type { MeterStore } from '../../../core/ports/store/meter-store.ts';
import { conflict } from '../../rejections.ts';
import { atMost } from '../session/at-most.ts';
import { RowWriter } from '../session/row-writer.ts';
import type { MeterRow, Schema } from '../session/schema.ts';
import { SeenRows } from '../session/seen-rows.ts';
import type { SqlSession } from '../session/sql-session.ts';
import { prepare } from '../session/statement.ts';

export function meterStatements(db: Kysely<Schema>) {
  return {
    rows: new RowWriter(db, 'meters'),
    get: prepare<{ id: string }, MeterRow>(({ id }) =>
      db.selectFrom('meters').selectAll().where('id', '=', id),
    ),
    forSandbox: prepare<{ uid: string }, MeterRow>(({ uid }) =>
      db
        .selectFrom('meters')
        .selectAll()
        .where('sandbox_uid', '=', uid)
        .orderBy('generation')
        .orderBy('opened_at')
        .orderBy('id'),
    ),
    openSince: prepare<{ before: number; limit: number }, MeterRow>(({ before, limit }) =>
      db
        .selectFrom('meters')
        .selectAll()
        .where('running_since', '<', before)
        .orderBy('running_since')
        .orderBy('id')
        .limit(atMost(limit)),
    ),
    dueFunding: prepare<{ now: number; limit: number }, MeterRow>(({ now, limit }) =>
      db
        .selectFrom('meters')
        .selectAll()
        .where('watched_fund_at', '<=', now)
        .orderBy('watched_fund_at')
        .orderBy('id')
        .limit(atMost(limit)),
    ),
    nextFunding: prepare<object, { readonly at: number | null }>(() =>
      db
        .selectFrom('meters')
        .select('watched_fund_at as at')
        .where('watched_fund_at', 'is not', null)
        .orderBy('watched_fund_at')
        .limit(sql.lit(1)),
    ),
    open: prepare<{ after: string; limit: number }, MeterRow>(({ after, limit }) =>
      db
        .selectFrom('meters')
        .selectAll()
        .where('closed_at', 'is', null)
        .where('id', '>', after)
        .orderBy('id')
        .limit(atMost(limit)),
    ),
  };
}

export class SqlMeters implements MeterStore {
  readonly #session: SqlSession;
  readonly #statements: ReturnType<typeof meterStatements>;
  readonly #seen = new SeenRows<MeterRow>();

  constructor(session: SqlSession, statements: ReturnType<typeof meterStatements>) {
    this.#session = session;
    this.#statements = statements;
  }

  async get(id: string): Promise<MeterRecord | null> {
    const row = await this.#session.first(this.#statements.get, { id });
    if (row === null) return null;
    this.#seen.set(id, row);
    return meterRecord(row);
  }

  async insert(record: MeterRecord): Promise<void> {
    const row = meterRow(record);
    const inserted = await this.#session.change(this.#statements.rows.insert(row));
    if (inserted === 0) throw conflict(`The meter ${record.id} exists.`);
    this.#session.funds(row.watched_fund_at);
    this.#seen.set(row.id, row);
  }

  async update(record: MeterRecord): Promise<void> {
    this.#session.assertWritable();
    const row = meterRow(record);
    const { id, sandbox_uid } = row;
    const there = await this.#seen.update(id, row, (changes) =>
      this.#session.change(this.#statements.rows.update(changes, { id, sandbox_uid })),
    );
    if (!there) throw conflict(`The meter ${id} is gone.`);
    this.#session.funds(row.watched_fund_at);
  }

  async forSandbox(uid: string): Promise<readonly MeterRecord[]> {
    return (await this.#session.all(this.#statements.forSandbox, { uid })).map(meterRecord);
  }

  async openSince(before: number, limit: number): Promise<readonly MeterRecord[]> {
    return (await this.#session.all(this.#statements.openSince, { before, limit })).map(meterRecord);
  }

  async dueFunding(now: number, limit: number): Promise<readonly MeterRecord[]> {
    return (await this.#session.all(this.#statements.dueFunding, { now, limit })).map(meterRecord);
  }

  async nextFundingAt(): Promise<number | null> {
    return (await this.#session.first(this.#statements.nextFunding, {}))?.at ?? null;
  }

  async open(afterId: string | null, limit: number): Promise<readonly MeterRecord[]> {
    const rows = await this.#session.all(this.#statements.open, { after: afterId ?? '', limit });
    return rows.map(meterRecord);
  }
}

function meterRow(record: MeterRecord): MeterRow {
  return {
    id: record.id,
    sandbox_uid: record.sandboxUid,
    workspace_id: record.workspaceId,
    generation: record.generation,
    extension_id: record.extensionId,
    hold_id: record.holdId,
    price_version: record.priceVersion,
    opened_at: record.openedAt,
    closed_at: record.closedAt,
    running_rate: String(record.runningRate),
    paused_rate: String(record.pausedRate),
    rate: String(record.rate),
    since: record.since,
    accrued: String(record.accrued),
    billed_ms: record.billedMs,
    create_fee_micro_usd: record.createFeeMicroUsd,
    minimum_seconds: record.minimumSeconds,
    charged_micro_usd: record.chargedMicroUsd,
    estimate_micro_usd: record.estimateMicroUsd,
    running_since: record.closedAt === null && record.rate > 0n ? record.since : null,
    quantum_ms: record.quantumMs,
    funded_until: record.fundedUntil,
    fund_at: record.fundAt,
    low_since: record.lowSince,
    sandbox_id: record.sandboxId,
    profile_id: record.profileId,
    actor: record.actor,
    key_id: record.keyId,
    run_id: record.runId,
    evidence: record.evidence,
    backend_ms: record.backendMs,
    observed_ms: record.observedMs,
    watched_fund_at: record.closedAt === null ? record.fundAt : null,
    provider_key_id: record.providerKeyId,
    payer: record.payer,
    millicpu: record.millicpu,
    memory_mb: record.memoryMb,
    cpu_ms: record.cpuMs,
    peak_memory_mb: record.peakMemoryMb,
  };
}

function meterRecord(row: MeterRow): MeterRecord {
  return {
    id: row.id,
    sandboxUid: row.sandbox_uid,
    workspaceId: row.workspace_id,
    generation: row.generation,
    extensionId: row.extension_id,
    holdId: row.hold_id,
    priceVersion: row.price_version,
    openedAt: row.opened_at,
    closedAt: row.closed_at,
    runningRate: BigInt(row.running_rate),
    pausedRate: BigInt(row.paused_rate),
    rate: BigInt(row.rate),
    since: row.since,
    accrued: BigInt(row.accrued),
    billedMs: row.billed_ms,
    createFeeMicroUsd: row.create_fee_micro_usd,
    minimumSeconds: row.minimum_seconds,
    chargedMicroUsd: row.charged_micro_usd,
    estimateMicroUsd: row.estimate_micro_usd,
    quantumMs: row.quantum_ms,
    fundedUntil: row.funded_until,
    fundAt: row.fund_at,
    lowSince: row.low_since,
    sandboxId: row.sandbox_id,
    profileId: row.profile_id,
    actor: row.actor,
    keyId: row.key_id,
    runId: row.run_id,
    evidence: row.evidence as MeterRecord['evidence'],
    backendMs: row.backend_ms,
    observedMs: row.observed_ms,
    providerKeyId: row.provider_key_id,
    payer: row.payer as MeterRecord['payer'],
    millicpu: row.millicpu,
    memoryMb: row.memory_mb,
    cpuMs: row.cpu_ms,
    peakMemoryMb: row.peak_memory_mb,
  };
}
