import type { CapabilityVector } from '../../contract/extensions/capability.ts';
import type { Subject } from './subject.ts';

/** Subjects of claims; a claim that is not in the vector is an obligation of every extension. */
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
  | 'services'
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
  /** Unique in the suite, and stable: `skip` and `only` select by it. */
  readonly name: string;
  readonly claim: Claim;
  /** `false` when the vector does not claim it. */
  applies(capabilities: CapabilityVector): boolean;
  /** Whether the test runs POSIX shell commands inside: left out where there is no `/bin/sh`. */
  readonly needsShell: boolean;
  /** Rejects with the violation; with `SkippedTest` when this machine cannot show it. */
  run(subject: Subject): Promise<void>;
}

/** Thrown by a test that cannot decide on this machine whether the claim is true. */
export class SkippedTest extends Error {
  override readonly name = 'SkippedTest';
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
