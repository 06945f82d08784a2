import { DatabaseSync } from 'node:sqlite';
import { describe, expect, it } from 'vitest';
import type { SandboxQuery } from '../../core/ports/store/sandbox-store.ts';
import { sandboxPage } from '../sql/sandboxes/sandbox-page.ts';
import { sqlStatements } from '../sql/sql-transaction.ts';
import { migrate } from './migrate.ts';
import { sqliteQueryBuilder } from './sqlite-query-builder.ts';

const database = new DatabaseSync(':memory:');
migrate(database);
const builder = sqliteQueryBuilder();

function planOf(sql: string): string[] {
  const steps = database.prepare(`EXPLAIN QUERY PLAN ${sql}`).all();
  return steps.map(({ detail }) => String(detail));
}

/** Steps that read a whole table or index, or sort what they read. */
function costly(sql: string): string[] {
  return planOf(sql).filter(
    (step) =>
      /^SCAN (?!CONSTANT ROW|page|named)|TEMP B-TREE/.test(step) && !/^SCAN s USING.*by_age$/.test(step),
  );
}

/** The queries that need no index: run once at start, about a handful of rows, or for a scrape of the metrics. */
const EXEMPT = new Set([
  'sandboxes.leasedByOthers',
  'meters.forSandbox',
  'attempts.recent',
  'sandboxes.countByState',
  'providerKeys.all',
]);

describe('query plans', () => {
  const statements = sqlStatements(builder);
  for (const group of [
    'sandboxes',
    'attempts',
    'events',
    'idempotency',
    'meters',
    'ledger',
    'uploads',
    'providerKeys',
  ] as const) {
    for (const [name, statement] of Object.entries(statements[group])) {
      if (typeof statement !== 'object' || !('sql' in statement) || EXEMPT.has(`${group}.${name}`)) continue;
      it(`a query looks ${group}.${name} up in an index`, () => {
        expect(costly(statement.sql as string)).toEqual([]);
      });
    }
  }

  const queries: Readonly<Record<string, Partial<SandboxQuery>>> = {
    'of a workspace': {},
    'of some states': { states: ['ready', 'active', 'paused'] },
    'of all workspaces': { workspaceId: null },
    'with a label': { labels: { team: 'a' } },
    'with labels': { labels: { team: 'a', tier: '1' }, states: ['ready'] },
  };
  for (const [name, query] of Object.entries(queries)) {
    for (const cursor of [null, { createdAt: 1, key: 'a' }]) {
      it(`a query reads a page ${name} in order${cursor ? ', from a cursor on' : ''}`, () => {
        const { sql } = sandboxPage(builder, { workspaceId: 'w', limit: 100, ...query }, cursor, 101);
        expect(costly(sql)).toEqual([]);
      });
    }
  }

  it('the count by state does not read destroyed rows', () => {
    const { sql } = statements.sandboxes.countByState as unknown as { sql: string };
    expect(planOf(sql).join('\n')).toContain('sandboxes_present_by_id');
  });

  it('a lookup of external ids does not scan the workspace', () => {
    const query: SandboxQuery = { workspaceId: 'w', externalId: 'x', limit: 100 };
    const plan = planOf(sandboxPage(builder, query, null, 101).sql).join('\n');
    for (const index of ['sandboxes_by_session', 'sandboxes_by_run', 'sandboxes_by_job']) {
      expect(plan).toContain(index);
    }
    expect(plan).not.toContain('sandboxes_of_workspace');
  });
});
