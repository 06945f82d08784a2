import type { IsolationLevel } from '../../../contract/extensions/capability.ts';

/** Why a level is not offered, and what to do about it. */
export interface Lack {
  readonly reason: string;
  readonly remedy: string;
}

/** The levels above a container, as a trial of their runtimes found them. */
export interface TriedLevels<Runtime> {
  /** By the level that the runtime was seen to give. */
  readonly offered: ReadonlyMap<IsolationLevel, Runtime>;
  readonly lacking: ReadonlyMap<IsolationLevel, Lack>;
}

/** As the header of an extension tells it. */
export function remediesOf({ lacking }: TriedLevels<unknown>): Record<string, string> {
  return Object.fromEntries(
    [...lacking].map(([level, { reason, remedy }]) => [level, `${reason}. ${remedy}`]),
  );
}
