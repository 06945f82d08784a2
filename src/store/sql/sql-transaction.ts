import type { Kysely } from 'kysely';
import type { ImageRecord } from '../../core/assets/image.ts';
import type { VolumeRecord } from '../../core/assets/volume.ts';
import type { Tx } from '../../core/ports/store/store.ts';
import { sandboxStatements } from './sandboxes/sandbox-statements.ts';
import { SqlSandboxes } from './sandboxes/sql-sandboxes.ts';
import { RowWriter } from './session/row-writer.ts';
import type { Schema, SettingRow } from './session/schema.ts';
import type { SqlSession } from './session/sql-session.ts';
import { prepare } from './session/statement.ts';
import { attemptStatements, SqlAttempts } from './tables/sql-attempts.ts';
import { auditStatements, SqlAudit } from './tables/sql-audit.ts';
import { canaryStatements, SqlCanaries } from './tables/sql-canaries.ts';
import { eventStatements, SqlEvents } from './tables/sql-events.ts';
import { hostStatements, SqlHosts } from './tables/sql-hosts.ts';
import { idempotencyStatements, SqlIdempotency } from './tables/sql-idempotency.ts';
import { keptStatements, SqlKept } from './tables/sql-kept.ts';
import { ledgerStatements, SqlLedger } from './tables/sql-ledger.ts';
import { meterStatements, SqlMeters } from './tables/sql-meters.ts';
import { outboxStatements, SqlOutbox } from './tables/sql-outbox.ts';
import { profileStatements, SqlProfiles } from './tables/sql-profiles.ts';
import { providerKeyStatements, SqlProviderKeys } from './tables/sql-provider-keys.ts';
import { quoteStatements, SqlQuotes } from './tables/sql-quotes.ts';
import { SqlSnapshots, snapshotStatements } from './tables/sql-snapshots.ts';
import { SqlTenancy, tenancyStatements } from './tables/sql-tenancy.ts';
import { SqlUploads, uploadStatements } from './tables/sql-uploads.ts';
import { SqlWebhooks, webhookStatements } from './tables/sql-webhooks.ts';

/** Compiled once for a dialect and used on each of its connections. */
export function sqlStatements(db: Kysely<Schema>) {
  return {
    sandboxes: sandboxStatements(db),
    attempts: attemptStatements(db),
    events: eventStatements(db),
    outbox: outboxStatements(db),
    idempotency: idempotencyStatements(db),
    snapshots: snapshotStatements(db),
    meters: meterStatements(db),
    ledger: ledgerStatements(db),
    profiles: profileStatements(db),
    tenancy: tenancyStatements(db),
    quotes: quoteStatements(db),
    hosts: hostStatements(db),
    canaries: canaryStatements(db),
    webhooks: webhookStatements(db),
    providerKeys: providerKeyStatements(db),
    audit: auditStatements(db),
    uploads: uploadStatements(db),
    images: keptStatements(db, 'images'),
    volumes: keptStatements(db, 'volumes'),
    settingRows: new RowWriter(db, 'settings'),
    setting: prepare<{ name: string }, SettingRow>(({ name }) =>
      db.selectFrom('settings').selectAll().where('name', '=', name),
    ),
  };
}

export type SqlStatements = ReturnType<typeof sqlStatements>;

/**
 * Gives the store's tables within one transaction, on any database that Kysely supports. Each is made when it is asked for: most
 * transactions are about three of them. Those that remember rows are made once.
 */
export class SqlTransaction implements Tx {
  readonly #session: SqlSession;
  readonly #statements: SqlStatements;
  #sandboxes: SqlSandboxes | null = null;
  #attempts: SqlAttempts | null = null;
  #meters: SqlMeters | null = null;

  constructor(session: SqlSession, statements: SqlStatements) {
    this.#session = session;
    this.#statements = statements;
  }

  get sandboxes(): SqlSandboxes {
    this.#sandboxes ??= new SqlSandboxes(this.#session, this.#statements.sandboxes, () =>
      this.#attempts?.forgetSeen(),
    );
    return this.#sandboxes;
  }

  get attempts(): SqlAttempts {
    this.#attempts ??= new SqlAttempts(this.#session, this.#statements.attempts);
    return this.#attempts;
  }

  get meters(): SqlMeters {
    this.#meters ??= new SqlMeters(this.#session, this.#statements.meters);
    return this.#meters;
  }

  get events(): SqlEvents {
    return new SqlEvents(this.#session, this.#statements.events);
  }

  get outbox(): SqlOutbox {
    return new SqlOutbox(this.#session, this.#statements.outbox);
  }

  get idempotency(): SqlIdempotency {
    return new SqlIdempotency(this.#session, this.#statements.idempotency);
  }

  get snapshots(): SqlSnapshots {
    return new SqlSnapshots(this.#session, this.#statements.snapshots);
  }

  get ledger(): SqlLedger {
    return new SqlLedger(this.#session, this.#statements.ledger);
  }

  get profiles(): SqlProfiles {
    return new SqlProfiles(this.#session, this.#statements.profiles);
  }

  get tenancy(): SqlTenancy {
    return new SqlTenancy(this.#session, this.#statements.tenancy);
  }

  get quotes(): SqlQuotes {
    return new SqlQuotes(this.#session, this.#statements.quotes);
  }

  get hosts(): SqlHosts {
    return new SqlHosts(this.#session, this.#statements.hosts);
  }

  get canaries(): SqlCanaries {
    return new SqlCanaries(this.#session, this.#statements.canaries);
  }

  get webhooks(): SqlWebhooks {
    return new SqlWebhooks(this.#session, this.#statements.webhooks);
  }

  get providerKeys(): SqlProviderKeys {
    return new SqlProviderKeys(this.#session, this.#statements.providerKeys);
  }

  get audit(): SqlAudit {
    return new SqlAudit(this.#session, this.#statements.audit);
  }

  get uploads(): SqlUploads {
    return new SqlUploads(this.#session, this.#statements.uploads);
  }

  get images(): SqlKept<ImageRecord> {
    return new SqlKept(this.#session, this.#statements.images, 'image');
  }

  get volumes(): SqlKept<VolumeRecord> {
    return new SqlKept(this.#session, this.#statements.volumes, 'volume');
  }

  async setting(name: string): Promise<string | null> {
    return (await this.#session.first(this.#statements.setting, { name }))?.value ?? null;
  }

  async setSetting(name: string, value: string): Promise<void> {
    await this.#session.change(this.#statements.settingRows.upsert({ name, value }, ['name']));
  }
}
