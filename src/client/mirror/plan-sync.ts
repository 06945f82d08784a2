import type { Tree } from './tree-entry.ts';
import { sameEntry } from './tree-entry.ts';

export interface SyncStep {
  readonly path: string;
  readonly action: 'write' | 'delete';
}

export interface SyncPlan {
  readonly steps: readonly SyncStep[];
  /** Paths changed on both sides, differently. */
  readonly conflicts: readonly string[];
}

/**
 * Merges three ways by content: a change made inside since the base is taken where the file here is unchanged; a change on both
 * sides is a conflict, and taken only by force. A change made here alone stays.
 */
export function planSync(base: Tree, here: Tree, inside: Tree, force: boolean): SyncPlan {
  const steps: SyncStep[] = [];
  const conflicts: string[] = [];
  for (const path of [...new Set([...base.keys(), ...inside.keys()])].sort()) {
    const [was, is, would] = [base.get(path), here.get(path), inside.get(path)];
    if (sameEntry(is, would) || sameEntry(was, would)) continue;
    if (!sameEntry(was, is) && !force) conflicts.push(path);
    else steps.push({ path, action: would === undefined ? 'delete' : 'write' });
  }
  return { steps, conflicts };
}
