import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { budgetMiscounts } from './mutations/budget-miscounts.ts';
import { captureAfterCommit } from './mutations/capture-after-commit.ts';
import { endBeforeCheckpoint } from './mutations/end-before-checkpoint.ts';
import { eventOutsideTransaction } from './mutations/event-outside-transaction.ts';
import { fallbackAfterMaybe } from './mutations/fallback-after-maybe.ts';
import { journalAfterCall } from './mutations/journal-after-call.ts';
import { livingCounter } from './mutations/living-counter.ts';
import { loserLeftAlone } from './mutations/loser-left-alone.ts';
import type { Mutation, Patch } from './mutations/mutation.ts';
import { pauseIsBelieved } from './mutations/pause-is-believed.ts';
import { readyIsNotPaid } from './mutations/ready-is-not-paid.ts';
import { recordOutsideTransaction } from './mutations/record-outside-transaction.ts';
import { restartForgetsSuccess } from './mutations/restart-forgets-success.ts';
import { ttlTimerInMemory } from './mutations/ttl-timer-in-memory.ts';
import { runSeeds } from './run-seeds.ts';

const MUTATIONS: readonly Mutation[] = [
  journalAfterCall,
  eventOutsideTransaction,
  ttlTimerInMemory,
  fallbackAfterMaybe,
  livingCounter,
  captureAfterCommit,
  endBeforeCheckpoint,
  loserLeftAlone,
  pauseIsBelieved,
  budgetMiscounts,
  recordOutsideTransaction,
  restartForgetsSuccess,
  readyIsNotPaid,
];
const MOST_SEEDS = 600;
const ROOT = join(import.meta.dirname, '../..');

/** Each known mistake, made in a copy of the source, must be found. */
export async function runMutations(): Promise<boolean> {
  let allFound = true;
  for (const mutation of MUTATIONS) if (!(await isFound(mutation))) allFound = false;
  return allFound;
}

async function isFound(mutation: Mutation): Promise<boolean> {
  const copy = mkdtempSync(join(tmpdir(), 'sandboxer-mutation-'));
  try {
    prepare(copy, mutation.patches);
    let seeds = 0;
    let found: { seed: number; invariant: string; detail: string } | null = null;
    const worker = pathToFileURL(join(copy, 'tests/simulation/seed-worker.ts'));
    await runSeeds(
      1,
      MOST_SEEDS,
      ({ seed, violation }) => {
        seeds += 1;
        if (violation === null) return 'go on';
        found ??= { seed, ...violation };
        return 'stop';
      },
      worker,
    );
    return report(mutation, found, seeds);
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
}

function prepare(copy: string, patches: readonly Patch[]): void {
  for (const part of ['src', 'tests/simulation', 'package.json']) {
    cpSync(join(ROOT, part), join(copy, part), { recursive: true });
  }
  symlinkSync(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
  for (const { file, search, replace } of patches) {
    const path = join(copy, file);
    const parts = readFileSync(path, 'utf8').split(search);
    if (parts.length !== 2) throw new Error(`${file} has ${parts.length - 1} places that read: ${search}`);
    writeFileSync(path, parts.join(replace));
  }
}

function report(
  mutation: Mutation,
  found: { seed: number; invariant: string; detail: string } | null,
  seeds: number,
): boolean {
  const { name, what, breaks } = mutation;
  if (found === null) {
    console.log(`✗ ${name} (${what}): not found in ${seeds} seeds`);
    return false;
  }
  const expected = breaks.includes(found.invariant);
  const where = `by ${found.invariant}, seed ${found.seed}, after ${seeds} seed${seeds === 1 ? '' : 's'}`;
  console.log(`${expected ? '✓' : '✗'} ${name} (${what}): found ${where}: ${found.detail}`);
  if (!expected) console.log(`  expected ${breaks.join(' or ')}`);
  return expected;
}
