import type { IsolationLevel } from '../../../contract/extensions/capability.ts';

/** Why a level is not offered, and the remedy. */
export interface Lack {
  readonly reason: string;
  readonly remedy: string;
}

/** The levels above a container, as a trial of their runtimes found them. */
export interface TriedLevels<Runtime> {
  /** Runtimes by the level that their trial proved. */
  readonly offered: ReadonlyMap<IsolationLevel, Runtime>;
  readonly lacking: ReadonlyMap<IsolationLevel, Lack>;
}

/** Returns the remedies for the header of an extension. */
export function remediesOf({ lacking }: TriedLevels<unknown>): Record<string, string> {
  return Object.fromEntries(
    [...lacking].map(([level, { reason, remedy }]) => [level, `${reason}. ${remedy}`]),
  );
}
