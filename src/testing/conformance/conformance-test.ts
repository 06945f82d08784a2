import type { CapabilityVector } from '../../contract/capability.ts';
import type { Clock } from '../../core/clock.ts';
import type { Extension, PlacementHost } from '../../core/extension.ts';
import type { Recipe } from '../../core/recipe.ts';
import type { Subject } from './subject.ts';

/** Everything a claim can be about; what is not in the vector is owed by every extension. */
export type Claim =
  | 'contract'
  | 'lifecycle'
  | 'abort'
  | 'exec'
  | 'background'
  | 'pty'
  | 'files'
  | 'watch'
  | 'ports'
  | 'pause'
  | 'snapshot'
  | 'fork'
  | 'dead_man'
  | 'credentials'
  | 'deny_all'
  | 'resources'
  | 'refusal'
  | 'host';

export interface ConformanceTest {
  /** Unique in the suite, and stable: `skip` and `only` go by it. */
  readonly name: string;
  readonly claim: Claim;
  /** `false` when the vector does not claim it. */
  applies(capabilities: CapabilityVector): boolean;
  /** Runs POSIX shell commands inside: left out where there is no `/bin/sh`. */
  readonly needsShell: boolean;
  /** Rejects with what is wrong; `SkippedTest` when it cannot be told here. */
  run(subject: Subject): Promise<void>;
}

/** Thrown by a test that cannot tell whether the claim is true here. */
export class SkippedTest extends Error {
  override readonly name = 'SkippedTest';
}

export interface ConformanceOptions {
  /** A backend that is ready to be used. It is made once for the whole run. */
  create(): Promise<{ readonly extension: Extension; cleanup(): Promise<void> }>;
  /** What to ask for instead of the least that the vector offers. */
  readonly recipe?: Partial<Recipe>;
  readonly host?: PlacementHost;
  readonly clock?: Clock;
  /** Mounts, interfaces, processes, cgroups … as text: it must be the same after as before. */
  hostSnapshot?(): Promise<string>;
  /** Whether `/bin/sh` and the POSIX tools are inside. */
  readonly shell?: boolean;
  /** Names of tests, each with the reason why it is left out. */
  readonly skip?: Readonly<Record<string, string>>;
  /** How soon an aborted call must have ended. */
  readonly abortWithinMs?: number;
  /** The shortest life that the backend can be asked for. */
  readonly deadManMs?: number;
  /** How much later than asked it may end a sandbox, or show that something has gone. */
  readonly graceMs?: number;
}

type Applies = ConformanceTest['applies'];

/** Declares the tests of one claim. */
export function claimTests(claim: Claim, applies: Applies = () => true) {
  return (
    name: string,
    run: ConformanceTest['run'],
    options: { shell?: boolean; applies?: Applies } = {},
  ): ConformanceTest => ({
    name: `${claim}: ${name}`,
    claim,
    needsShell: options.shell ?? false,
    applies: (capabilities) => applies(capabilities) && (options.applies?.(capabilities) ?? true),
    run,
  });
}
