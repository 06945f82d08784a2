import type { SandboxRecord } from '../../../src/core/lifecycle/sandbox.ts';
import type { StubWorld } from '../../../src/extensions/saas-stub/world/world.ts';
import type { Mirror, Write } from '../mirror.ts';
import type { Scenario } from '../scenario.ts';
import type { Scheduler } from '../scheduler.ts';
import type { RequestInfo } from '../sim-store.ts';

export interface AuditContext {
  readonly scenario: Scenario;
  readonly scheduler: Scheduler;
  readonly mirror: Mirror;
  readonly worlds: ReadonlyMap<string, StubWorld>;
  /** Whether the process of this name runs. */
  isAlive(process: string): boolean;
  /** Since when a process has been up and time has run evenly; `null` while nobody is up. */
  steadySince(): number | null;
  fail(invariant: string, detail: string): void;
}

export interface Commit {
  readonly label: string;
  readonly writes: readonly Write[];
  readonly process: string;
  readonly request: RequestInfo | null;
}

/** A commit that is in the mirror now, with the rows as they were before it. */
export interface AppliedCommit extends Commit {
  readonly before: ReadonlyMap<string, SandboxRecord | undefined>;
  readonly after: ReadonlyMap<string, SandboxRecord>;
}
