import type { Clock } from '../../core/ports/clock.ts';
import type { Extension, PlacementHost } from '../../core/ports/extension.ts';
import type { Recipe } from '../../core/recipe/recipe.ts';

export interface ConformanceOptions {
  /** A backend that is ready to be used. It is made once for the whole run. */
  create(): Promise<{ readonly extension: Extension; cleanup(): Promise<void> }>;
  /** What to ask for instead of the least that the vector offers. */
  readonly recipe?: Partial<Recipe>;
  readonly host?: PlacementHost;
  /** One that the vendor takes: for a backend that has `checkKey`. */
  readonly key?: string;
  readonly clock?: Clock;
  /** Mounts, interfaces, processes, cgroups … as text: it must be the same after as before. */
  hostSnapshot?(): Promise<string>;
  /** Whether `/bin/sh` and the POSIX tools are inside. */
  readonly shell?: boolean;
  /** Names of tests, each with the reason why it is left out. */
  readonly skip?: Readonly<Record<string, string>>;
  /** How soon an aborted call must have ended: 20 s where it is not said. */
  readonly abortWithinMs?: number;
  /** The shortest life that the backend can be asked for, beyond the time it takes to be ready. */
  readonly deadManMs?: number;
  /** How much later than asked it may end a sandbox, or show that something has gone: 30 s. */
  readonly graceMs?: number;
}
