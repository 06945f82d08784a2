import type { Kysely } from 'kysely';
import type { Tx } from '../../core/store.ts';
import { RowWriter } from './row-writer.ts';
import { sandboxStatements } from './sandbox-statements.ts';
import type { Schema, SettingRow } from './schema.ts';
import { attemptStatements, SqlAttempts } from './sql-attempts.ts';
import { auditStatements, SqlAudit } from './sql-audit.ts';
import { canaryStatements, SqlCanaries } from './sql-canaries.ts';
import { eventStatements, SqlEvents } from './sql-events.ts';
import { hostStatements, SqlHosts } from './sql-hosts.ts';
import { idempotencyStatements, SqlIdempotency } from './sql-idempotency.ts';
import { keptStatements, SqlKept } from './sql-kept.ts';
import { ledgerStatements, SqlLedger } from './sql-ledger.ts';
import { meterStatements, SqlMeters } from './sql-meters.ts';
import { outboxStatements, SqlOutbox } from './sql-outbox.ts';
import { profileStatements, SqlProfiles } from './sql-profiles.ts';
import { providerKeyStatements, SqlProviderKeys } from './sql-provider-keys.ts';
import { quoteStatements, SqlQuotes } from './sql-quotes.ts';
import { SqlSandboxes } from './sql-sandboxes.ts';
import type { SqlSession } from './sql-session.ts';
import { SqlSnapshots, snapshotStatements } from './sql-snapshots.ts';
import { SqlTenancy, tenancyStatements } from './sql-tenancy.ts';
import { SqlUploads, uploadStatements } from './sql-uploads.ts';
import { SqlWebhooks, webhookStatements } from './sql-webhooks.ts';
import { prepare } from './statement.ts';

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

/** The store's tables within one transaction, on any database that Kysely speaks to. */
export function sqlTransaction(session: SqlSession, statements: SqlStatements): Tx {
  return {
    sandboxes: new SqlSandboxes(session, statements.sandboxes),
    attempts: new SqlAttempts(session, statements.attempts),
    events: new SqlEvents(session, statements.events),
    outbox: new SqlOutbox(session, statements.outbox),
    idempotency: new SqlIdempotency(session, statements.idempotency),
    snapshots: new SqlSnapshots(session, statements.snapshots),
    meters: new SqlMeters(session, statements.meters),
    ledger: new SqlLedger(session, statements.ledger),
    profiles: new SqlProfiles(session, statements.profiles),
    tenancy: new SqlTenancy(session, statements.tenancy),
    quotes: new SqlQuotes(session, statements.quotes),
    hosts: new SqlHosts(session, statements.hosts),
    canaries: new SqlCanaries(session, statements.canaries),
    webhooks: new SqlWebhooks(session, statements.webhooks),
    providerKeys: new SqlProviderKeys(session, statements.providerKeys),
    audit: new SqlAudit(session, statements.audit),
    uploads: new SqlUploads(session, statements.uploads),
    images: new SqlKept(session, statements.images, 'image'),
    volumes: new SqlKept(session, statements.volumes, 'volume'),
    async setting(name) {
      return (await session.first(statements.setting, { name }))?.value ?? null;
    },
    async setSetting(name, value) {
      await session.change(statements.settingRows.upsert({ name, value }, ['name']));
    },
  };
}
