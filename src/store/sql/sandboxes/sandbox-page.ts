import type { CompiledQuery, Kysely, RawBuilder } from 'kysely';
import { sql } from 'kysely';
import { SandboxState } from '../../../contract/values/state.ts';
import type { SandboxQuery } from '../../../core/ports/store/sandbox-store.ts';
import type { PageCursor } from '../../page-cursor.ts';
import { atMost } from '../session/at-most.ts';
import type { SandboxRow, Schema } from '../session/schema.ts';

/**
 * Reads a page of sandboxes, newest first. Each form of the query begins at an index that yields few rows or yields them in
 * order, and joins with `cross join`, which keeps SQLite to that order and means nothing special elsewhere.
 */
export function sandboxPage(
  db: Kysely<Schema>,
  query: SandboxQuery,
  cursor: PageCursor | null,
  limit: number,
): CompiledQuery<SandboxRow> {
  const [label, ...labels] = Object.entries(query.labels ?? {});
  if (query.externalId !== undefined) {
    return byExternalId(query, query.externalId, label ? [label, ...labels] : [], { cursor, limit }).compile(
      db,
    );
  }
  if (label !== undefined) return byLabel(query, label, labels, { cursor, limit }).compile(db);
  return inOrder(query, cursor, limit).compile(db);
}

type Label = readonly [name: string, value: string];

/** A workspace's index has each state's rows in order: merging them reads no row that is not on the page. */
function inOrder(query: SandboxQuery, cursor: PageCursor | null, limit: number): RawBuilder<SandboxRow> {
  const states = query.workspaceId === null ? [query.states] : (query.states ?? SandboxState.options);
  const arms = states.map((state) => {
    const conditions = filters({ ...query, states: typeof state === 'string' ? [state] : state }, []);
    if (cursor) conditions.push(sql`(s.created_at, s.uid) < (${cursor.createdAt}, ${cursor.key})`);
    return sql`select s.created_at as created_at, s.uid as uid from sandboxes s where ${all(conditions)}`;
  });
  return sql<SandboxRow>`
    select s.* from (
      ${sql.join(arms, sql` union all `)} order by created_at desc, uid desc limit ${atMost(limit)}
    ) page cross join sandboxes s where s.uid = page.uid
    order by page.created_at desc, page.uid desc`;
}

interface PageSpan {
  readonly cursor: PageCursor | null;
  readonly limit: number;
}

function byLabel(
  query: SandboxQuery,
  [name, value]: Label,
  others: readonly Label[],
  { cursor, limit }: PageSpan,
): RawBuilder<SandboxRow> {
  const conditions = [sql`l.name = ${name}`, sql`l.value = ${value}`, sql`s.uid = l.sandbox_uid`];
  if (cursor) conditions.push(sql`(l.created_at, l.sandbox_uid) < (${cursor.createdAt}, ${cursor.key})`);
  return sql<SandboxRow>`
    select s.* from sandbox_labels l cross join sandboxes s
    where ${all([...conditions, ...filters(query, others)])}
    order by l.created_at desc, l.sandbox_uid desc limit ${atMost(limit)}`;
}

function byExternalId(
  query: SandboxQuery,
  externalId: string,
  labels: readonly Label[],
  { cursor, limit }: PageSpan,
): RawBuilder<SandboxRow> {
  const conditions = [sql`s.uid = named.uid`, ...filters(query, labels)];
  if (cursor) conditions.push(sql`(s.created_at, s.uid) < (${cursor.createdAt}, ${cursor.key})`);
  return sql<SandboxRow>`
    select s.* from (
      select uid from sandboxes where session_id = ${externalId}
      union select uid from sandboxes where run_id = ${externalId}
      union select uid from sandboxes where job_id = ${externalId}
    ) named cross join sandboxes s
    where ${all(conditions)}
    order by s.created_at desc, s.uid desc limit ${atMost(limit)}`;
}

type Filters = Omit<SandboxQuery, 'states'> & { readonly states?: SandboxQuery['states'] | undefined };

function filters(query: Filters, labels: readonly Label[]): RawBuilder<unknown>[] {
  const { workspaceId, states, profileId, extensionId, harness } = query;
  const conditions: RawBuilder<unknown>[] = [];
  if (workspaceId !== null) conditions.push(sql`s.workspace_id = ${workspaceId}`);
  if (states?.length === 1) conditions.push(sql`s.state = ${states[0]}`);
  else if (states !== undefined) conditions.push(sql`s.state in (${sql.join(states)})`);
  if (profileId !== undefined) conditions.push(sql`s.profile_id = ${profileId}`);
  if (extensionId !== undefined) conditions.push(sql`s.extension_id = ${extensionId}`);
  if (harness !== undefined) conditions.push(sql`s.harness = ${harness}`);
  for (const [name, value] of labels) {
    conditions.push(sql`exists (
      select 1 from sandbox_labels o where o.sandbox_uid = s.uid and o.name = ${name} and o.value = ${value}
    )`);
  }
  return conditions;
}

function all(conditions: readonly RawBuilder<unknown>[]): RawBuilder<unknown> {
  return conditions.length === 0 ? sql`1 = 1` : sql.join([...conditions], sql` and `);
}
