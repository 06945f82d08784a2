import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { StubWorldState } from '../world.ts';

export interface SavedState {
  /** Marks the processes of this stub, also over a restart of it. */
  readonly id: string;
  readonly world: StubWorldState;
}

function fileIn(directory: string): string {
  return join(directory, 'state.json');
}

export function readState(directory: string): SavedState | null {
  try {
    return JSON.parse(readFileSync(fileIn(directory), 'utf8')) as SavedState;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}

/** The whole state, in one step: a crash leaves the old one or the new. */
export function writeState(directory: string, state: SavedState): void {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const beside = `${fileIn(directory)}.new`;
  writeFileSync(beside, JSON.stringify(state), { mode: 0o600 });
  renameSync(beside, fileIn(directory));
}
