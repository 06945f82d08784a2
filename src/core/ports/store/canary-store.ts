import type { CanaryRecord } from '../../hosts/canary.ts';

export interface CanaryStore {
  get(attemptId: string): Promise<CanaryRecord | null>;
  /** Lists all records, by attempt. */
  list(): Promise<readonly CanaryRecord[]>;
  insert(record: CanaryRecord): Promise<void>;
  remove(attemptId: string): Promise<void>;
}
