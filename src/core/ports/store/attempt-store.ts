import type { HostLoads } from '../../hosts/host.ts';
import type { AttemptRecord } from '../../lifecycle/attempt.ts';
import type { SetupLog } from '../../lifecycle/setup-log.ts';

export interface AttemptStore {
  get(attemptId: string): Promise<AttemptRecord | null>;
  forSandbox(uid: string): Promise<readonly AttemptRecord[]>;
  /** Returns the reserved and running load of each host, or of these: sums over the attempts that are not gone. */
  hostLoads(hostIds?: readonly string[]): Promise<HostLoads>;
  /** Lists the attempts on that host that are not gone, newest first. */
  onHost(hostId: string, limit: number): Promise<readonly AttemptRecord[]>;
  /** The last `limit` of each backend on each host, newest first. */
  recent(limit: number): Promise<readonly AttemptRecord[]>;
  insert(record: AttemptRecord): Promise<void>;
  update(record: AttemptRecord): Promise<void>;
  /**
   * Stores the setup log of an attempt in place of an earlier one: setup runs again after a crash. The log is removed with its
   * sandbox.
   */
  putSetup(log: SetupLog): Promise<void>;
  /** Lists the setup logs in the order of the attempts. */
  setups(sandboxUid: string): Promise<readonly SetupLog[]>;
}
