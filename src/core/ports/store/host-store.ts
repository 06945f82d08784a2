import type { HostRecord, HostSample } from '../../hosts/host.ts';

export interface HostStore {
  get(id: string): Promise<HostRecord | null>;
  /** Lists all hosts, by id. */
  list(): Promise<readonly HostRecord[]>;
  insert(record: HostRecord): Promise<void>;
  /** Compare-and-set like sandboxes. */
  update(record: HostRecord): Promise<HostRecord>;
  remove(id: string): Promise<void>;
  /** Replaces the one of the same host, kind and time. */
  addSample(sample: HostSample): Promise<void>;
  /** Newest first. */
  samples(hostId: string, kind: HostSample['kind'], limit: number): Promise<readonly HostSample[]>;
  pruneSamples(before: number, limit: number): Promise<number>;
}
