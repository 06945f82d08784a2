import { isEstablished } from '../../core/lifecycle/lifecycle.ts';
import type { SandboxDocuments, SandboxRecord } from '../../core/lifecycle/sandbox.ts';
import type { BackendStep } from './advance.ts';

/** A sandbox that this process holds the lease of, with the next steps; without a step the lease is given up. */
export interface Claim {
  readonly sandbox: SandboxRecord;
  readonly token: string;
  readonly steps: readonly BackendStep[];
  readonly documents: SandboxDocuments;
}

export function isClaim(admitted: Claim | SandboxRecord): admitted is Claim {
  return 'token' in admitted;
}

/** A step under way. No two steps of a sandbox are about the same attempt, and only one is an operation. */
export interface Lane {
  readonly step: BackendStep;
  readonly controller: AbortController;
}

/** The work of this process on one sandbox at present. */
export interface Work {
  readonly token: string;
  readonly lanes: Map<string, Lane>;
  /** The lanes whose step is to be taken again, and when. */
  readonly deferred: Map<string, number>;
  /** The newest that was written. */
  latest: Claim;
  readonly answer: PromiseWithResolvers<SandboxRecord>;
}

export function laneOf(step: BackendStep): string {
  if (step.kind === 'operate' || step.kind === 'hedge') return step.kind;
  return step.attempt.attemptId;
}

/** The goal of a step. Provisioning and probing have the same goal, a ready attempt: a lane goes from the one to the other. */
export function goalOf({ kind }: BackendStep): string {
  return kind === 'provision' || kind === 'probe' ? 'ready' : kind;
}

/** Whether the sandbox is usable and the only work left is to remove leftover attempts. */
export function hasOnlyLeftovers({ sandbox, steps }: Claim): boolean {
  return isEstablished(sandbox.state) && steps.every(({ kind }) => kind === 'teardown');
}

/** Makes the record of the work on a claim. */
export function workOn(claim: Claim): Work {
  const answer = Promise.withResolvers<SandboxRecord>();
  return { token: claim.token, lanes: new Map(), deferred: new Map(), latest: claim, answer };
}
