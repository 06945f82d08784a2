import { SandboxerError } from '../contract/errors/errors.ts';
import type { Migration } from './migration-files.ts';

/** A migration that the database records as applied. */
export type AppliedMigration = Pick<Migration, 'number' | 'name' | 'sha256'>;

/**
 * Returns the migrations still to be applied. Throws, before anything is changed, when this version cannot know what it would
 * change.
 */
export function migrationPlan(
  known: readonly Migration[],
  applied: readonly AppliedMigration[],
): readonly Migration[] {
  const byNumber = new Map(known.map((migration) => [migration.number, migration]));
  for (const { number, name, sha256 } of applied) {
    const migration = byNumber.get(number);
    if (migration === undefined) {
      throw refusal(
        `It is at migration ${number} ("${name}"), which is not known here; this version knows ${known.at(-1)?.number}.`,
        'Run the version that wrote it or a newer one.',
      );
    }
    if (migration.sha256 !== sha256) {
      throw refusal(`Migration ${number} ("${name}") was applied with another content.`, RESTORE);
    }
  }
  const done = new Set(applied.map(({ number }) => number));
  if (done.size > 0 && !done.has(1)) throw refusal('Its migration 1 is not recorded.', RESTORE);
  return known.filter(({ number }) => !done.has(number));
}

export function foreignDatabase(): SandboxerError {
  return refusal('It has tables, but not those of sand-boxer.', 'Name another state directory.');
}

const RESTORE = 'Install an unmodified release, or restore the database from a backup that this one wrote.';

function refusal(detail: string, remedy: string): SandboxerError {
  const what = `The database does not fit this version. ${detail}`;
  return new SandboxerError('SBX_STORE_INCOMPATIBLE', what, { remedy });
}
