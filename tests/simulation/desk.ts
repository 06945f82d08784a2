import type { MemoryDatabase } from '../../src/store/memory/memory-database.ts';
import type { Auditor } from './auditor.ts';
import type { Prng } from './prng.ts';
import type { RecordingTx } from './recording-tx.ts';
import type { Scenario } from './scenario.ts';
import type { Scheduler } from './scheduler.ts';
import type { SimNetwork } from './sim-network.ts';

/** What everything in one run shares. */
export interface Desk {
  readonly scenario: Scenario;
  readonly scheduler: Scheduler;
  readonly database: MemoryDatabase;
  readonly recorder: RecordingTx;
  readonly auditor: Auditor;
  readonly network: SimNetwork;
  /** Latencies and other small things of the processes. */
  readonly prng: Prng;
}
