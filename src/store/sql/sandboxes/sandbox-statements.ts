import type { Kysely } from 'kysely';
import { sql } from 'kysely';
import { SandboxState } from '../../../contract/values/state.ts';
import { LIVING_STATES } from '../../../core/lifecycle/lifecycle.ts';
import { atMost } from '../session/at-most.ts';
import { RowWriter } from '../session/row-writer.ts';
import type { SandboxDocumentsRow, SandboxRow, Schema } from '../session/schema.ts';
import { prepare } from '../session/statement.ts';

type Watched = 'claimable_at' | 'watched_deadline_at' | 'watched_idle_at';

/** Constants of a partial index are written into the text: a bound value would hide that the index applies. */
export function sandboxStatements(db: Kysely<Schema>) {
  const rows = db.selectFrom('sandboxes').selectAll();
  const due = (column: Watched) =>
    prepare<{ now: number; limit: number }, SandboxRow>(({ now, limit }) =>
      rows.where(column, '<=', now).orderBy(column).orderBy('uid').limit(atMost(limit)),
    );
  const earliest = (column: Watched) =>
    sql`(select min(${sql.ref(column)}) from sandboxes where ${sql.ref(column)} is not null)`;
  return {
    db,
    rows: new RowWriter(db, 'sandboxes'),
    labelRows: new RowWriter(db, 'sandbox_labels'),
    documentRows: new RowWriter(db, 'sandbox_documents'),
    get: prepare<{ uid: string }, SandboxRow>(({ uid }) => rows.where('uid', '=', uid)),
    presentById: prepare<{ workspaceId: string; id: string }, SandboxRow>(({ workspaceId, id }) =>
      rows
        .where('id', '=', id)
        .where('workspace_id', '=', workspaceId)
        .where('state', '<>', sql.lit('destroyed')),
    ),
    lastDestroyedById: prepare<{ workspaceId: string; id: string }, SandboxRow>(({ workspaceId, id }) =>
      rows
        .where('id', '=', id)
        .where('workspace_id', '=', workspaceId)
        .where('state', '=', sql.lit('destroyed'))
        .orderBy('created_at', 'desc')
        .orderBy('uid', 'desc')
        .limit(sql.lit(1)),
    ),
    /** The query has two halves, one for each index. */
    workspacesOfId: prepare<{ id: string }, Pick<SandboxRow, 'workspace_id'>>(({ id }) => {
      const ofId = db.selectFrom('sandboxes').select('workspace_id').where('id', '=', id);
      return ofId
        .where('state', '<>', sql.lit('destroyed'))
        .union(ofId.where('state', '=', sql.lit('destroyed')))
        .limit(sql.lit(2));
    }),
    byReuseKey: prepare<{ workspaceId: string; reuseKey: string }, SandboxRow>(({ workspaceId, reuseKey }) =>
      rows.where('workspace_id', '=', workspaceId).where('reuse_key', '=', reuseKey),
    ),
    documents: prepare<{ uid: string; generation: number }, SandboxDocumentsRow>(({ uid, generation }) =>
      db
        .selectFrom('sandbox_documents')
        .selectAll()
        .where('uid', '=', uid)
        .where('generation', '=', generation),
    ),
    countLiving: prepare<{ workspaceId: string }, { count: number | string }>(({ workspaceId }) =>
      db
        .selectFrom('sandboxes')
        .select((row) => row.fn.countAll<number>().as('count'))
        .where('workspace_id', '=', workspaceId)
        .where('state', 'in', LIVING_STATES),
    ),
    countCreated: prepare<{ workspaceId: string; since: number }, { count: number | string }>(
      ({ workspaceId, since }) =>
        db
          .selectFrom('sandboxes')
          .select((row) => row.fn.countAll<number>().as('count'))
          .where('workspace_id', '=', workspaceId)
          .where('state', 'in', SandboxState.options)
          .where('created_at', '>=', since),
    ),
    countByState: prepare<object, { state: string; count: number | string }>(() =>
      db
        .selectFrom('sandboxes')
        .select((row) => ['state', row.fn.countAll<number>().as('count')])
        .where('state', '<>', sql.lit('destroyed'))
        .groupBy('state'),
    ),
    dueWork: due('claimable_at'),
    dueDeadlines: due('watched_deadline_at'),
    dueIdle: due('watched_idle_at'),
    nextDue: prepare<object, { work: number | null; deadline: number | null; idle: number | null }>(() =>
      db.selectNoFrom([
        sql<number | null>`${earliest('claimable_at')}`.as('work'),
        sql<number | null>`${earliest('watched_deadline_at')}`.as('deadline'),
        sql<number | null>`${earliest('watched_idle_at')}`.as('idle'),
      ]),
    ),
    establishedOn: prepare<{ extensionId: string; afterUid: string; limit: number }, SandboxRow>(
      ({ extensionId, afterUid, limit }) =>
        rows
          .where('established_on', '=', extensionId)
          .where('uid', '>', afterUid)
          .orderBy('uid')
          .limit(atMost(limit)),
    ),
    /** Runs once, when a server starts: it reads the whole table rather than make every claim write one more index. */
    leasedByOthers: prepare<{ owner: string }, SandboxRow>(({ owner }) =>
      rows.where('lease_owner', 'is not', null).where('lease_owner', '<>', owner).orderBy('uid'),
    ),
    prunable: prepare<{ before: number; eventSeq: number; limit: number }, Pick<SandboxRow, 'uid'>>(
      ({ before, eventSeq, limit }) =>
        db
          .selectFrom('sandboxes')
          .select('uid')
          .where('state', '=', sql.lit('destroyed'))
          .where('state_since', '<', before)
          .where(({ not, exists, selectFrom }) =>
            not(
              exists(
                selectFrom('events')
                  .leftJoin('outbox_parked', 'outbox_parked.seq', 'events.seq')
                  .select('events.seq')
                  .whereRef('events.sandbox_uid', '=', 'sandboxes.uid')
                  .where(({ or, eb }) =>
                    or([eb('events.seq', '>', eventSeq), eb('outbox_parked.seq', 'is not', null)]),
                  ),
              ),
            ),
          )
          .orderBy('state_since')
          .orderBy('uid')
          .limit(atMost(limit)),
    ),
    remove: prepare<{ uid: string }, unknown>(({ uid }) => db.deleteFrom('sandboxes').where('uid', '=', uid)),
    removeLabels: prepare<{ uid: string }, unknown>(({ uid }) =>
      db.deleteFrom('sandbox_labels').where('sandbox_uid', '=', uid),
    ),
    removeDocuments: prepare<{ uid: string }, unknown>(({ uid }) =>
      db.deleteFrom('sandbox_documents').where('uid', '=', uid),
    ),
    removeSetups: prepare<{ uid: string }, unknown>(({ uid }) =>
      db.deleteFrom('setup_logs').where('sandbox_uid', '=', uid),
    ),
    removeAttempts: prepare<{ uid: string }, unknown>(({ uid }) =>
      db.deleteFrom('attempts').where('sandbox_uid', '=', uid),
    ),
    removeEvents: prepare<{ uid: string }, unknown>(({ uid }) =>
      db.deleteFrom('events').where('sandbox_uid', '=', uid),
    ),
  };
}

export type SandboxStatements = ReturnType<typeof sandboxStatements>;
