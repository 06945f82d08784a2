import type { Clock } from '../../core/ports/clock.ts';
import type { Extension, PlacementHost } from '../../core/ports/extension.ts';
import type { Recipe } from '../../core/recipe/recipe.ts';

export interface ConformanceOptions {
  /** Makes a backend that is ready to be used, once for the whole run. */
  create(): Promise<{ readonly extension: Extension; cleanup(): Promise<void> }>;
  /** Replaces fields of the smallest recipe that the vector offers. */
  readonly recipe?: Partial<Recipe>;
  readonly host?: PlacementHost;
  /** A key that the vendor accepts: for a backend that has `checkKey`. */
  readonly key?: string;
  readonly clock?: Clock;
  /** Lists mounts, interfaces, processes, cgroups … as text: it must be the same after as before. */
  hostSnapshot?(): Promise<string>;
  /** Whether sandboxes have `/bin/sh` and the POSIX tools. */
  readonly shell?: boolean;
  /** Names of tests to leave out, each with the reason. */
  readonly skip?: Readonly<Record<string, string>>;
  /** Time after which an aborted call must have ended. Default: 20 s. */
  readonly abortWithinMs?: number;
  /** The shortest lifetime that the backend accepts, beyond the time it takes to be ready. */
  readonly deadManMs?: number;
  /** Delay after which an end or a removal must be visible. Default: 30 s. */
  readonly graceMs?: number;
}
