import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { MIGRATIONS_DIRECTORY, migrationFiles } from '../migration-files.ts';
import { SqliteStore } from './sqlite-store.ts';

const root = mkdtempSync(join(tmpdir(), 'sandboxer-migrate-'));
let count = 0;

afterAll(() => rmSync(root, { recursive: true, force: true }));

/** A copy of the migrations, with others added. */
function migrationsWith(files: Readonly<Record<string, string>>): URL {
  const directory = join(root, `migrations-${count++}`);
  cpSync(MIGRATIONS_DIRECTORY, directory, { recursive: true });
  for (const [name, sql] of Object.entries(files)) writeFileSync(join(directory, name), sql);
  return pathToFileURL(`${directory}/`);
}

async function openAndClose(path: string, migrations?: URL): Promise<void> {
  const store = await SqliteStore.open({ path, ...(migrations ? { migrations } : {}) });
  await store.close();
}

function applied(path: string): unknown[] {
  const database = new DatabaseSync(path);
  const rows = database.prepare('SELECT number, name, sha256 FROM schema_migrations ORDER BY number').all();
  database.close();
  return rows.map((row) => ({ ...row }));
}

const lastNumber = () => migrationFiles().at(-1)?.number ?? 0;
const freshPath = () => join(root, `state-${count++}`, 'sandboxer.db');
const record = ({ number, name, sha256 }: { number: number; name: string; sha256: string }) => ({
  number,
  name,
  sha256,
});

describe('migrations', () => {
  it('migrations are applied once, in order, and recorded', async () => {
    const path = freshPath();
    await openAndClose(path);
    expect(applied(path)).toEqual(migrationFiles().map(record));
    const second = `${String(lastNumber() + 1).padStart(4, '0')}-more.sql`;
    const more = migrationsWith({ [second]: 'CREATE TABLE more (a TEXT);' });
    await openAndClose(path, more);
    await openAndClose(path, more);
    expect(applied(path)).toEqual(migrationFiles(more).map(record));
  });

  it('migrations leave no part of a failed one', async () => {
    const path = freshPath();
    await openAndClose(path);
    const before = readFileSync(path);
    const next = `${String(lastNumber() + 1).padStart(4, '0')}-broken.sql`;
    const broken = migrationsWith({ [next]: 'CREATE TABLE fine (a TEXT); CREATE TABLE broken (;' });
    await expect(openAndClose(path, broken)).rejects.toThrow(/syntax/);
    expect(readFileSync(path).equals(before)).toBe(true);
    await openAndClose(path);
  });

  it('migrations refuse a database of a newer version, and change nothing', async () => {
    const path = freshPath();
    const next = `${String(lastNumber() + 1).padStart(4, '0')}-future.sql`;
    await openAndClose(path, migrationsWith({ [next]: 'CREATE TABLE future (a TEXT);' }));
    const before = readFileSync(path);
    await expect(openAndClose(path)).rejects.toMatchObject({
      code: 'SBX_STORE_INCOMPATIBLE',
      remedy: expect.stringContaining('newer'),
      retryable: false,
    });
    expect(readFileSync(path).equals(before)).toBe(true);
  });

  it('migrations refuse a database that was made by another content, and change nothing', async () => {
    const path = freshPath();
    const [first] = migrationFiles();
    const file = `${String(first?.number).padStart(4, '0')}-${first?.name}.sql`;
    await openAndClose(path, migrationsWith({ [file]: `${first?.sql}\n-- edited` }));
    const before = readFileSync(path);
    await expect(openAndClose(path)).rejects.toMatchObject({
      name: 'SandboxerError',
      detail: expect.stringContaining('another content'),
      remedy: expect.stringContaining('backup'),
    });
    expect(readFileSync(path).equals(before)).toBe(true);
  });

  it('migrations refuse a database whose record has a hole, and a foreign one', async () => {
    const path = freshPath();
    await openAndClose(path);
    const database = new DatabaseSync(path);
    database.exec('UPDATE schema_migrations SET number = number + 1000');
    database.close();
    await expect(openAndClose(path)).rejects.toMatchObject({ name: 'SandboxerError' });
    const foreign = freshPath();
    mkdirSync(join(foreign, '..'));
    const other = new DatabaseSync(foreign);
    other.exec('CREATE TABLE theirs (a TEXT)');
    other.close();
    await expect(openAndClose(foreign)).rejects.toMatchObject({ name: 'SandboxerError' });
  });

  it('migrations have numbers of their own', () => {
    const directory = migrationsWith({ '0001-again.sql': '' });
    expect(() => migrationFiles(directory)).toThrow(/number/);
  });

  it('migrations come from several branches: a smaller number that was not there yet is applied too', async () => {
    const path = freshPath();
    await openAndClose(path, migrationsWith({ '9002-mine.sql': 'CREATE TABLE mine (a TEXT);' }));
    const both = migrationsWith({
      '9001-theirs.sql': 'CREATE TABLE theirs (a TEXT);',
      '9002-mine.sql': 'CREATE TABLE mine (a TEXT);',
    });
    await openAndClose(path, both);
    expect(applied(path)).toEqual(migrationFiles(both).map(record));
  });
});
