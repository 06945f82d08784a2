import type { MeterRecord } from '../../credits/meter.ts';

export interface MeterStore {
  get(id: string): Promise<MeterRecord | null>;
  insert(record: MeterRecord): Promise<void>;
  update(record: MeterRecord): Promise<void>;
  forSandbox(uid: string): Promise<readonly MeterRecord[]>;
  /** Lists open meters with a rate above zero, last rebased before `before`. */
  openSince(before: number, limit: number): Promise<readonly MeterRecord[]>;
  /** Lists open meters with `fundAt ≤ now`, oldest first. */
  dueFunding(now: number, limit: number): Promise<readonly MeterRecord[]>;
  /** The earliest `fundAt` of an open one; `null` when there is none. */
  nextFundingAt(): Promise<number | null>;
  /** Lists open meters by id, after `afterId`. */
  open(afterId: string | null, limit: number): Promise<readonly MeterRecord[]>;
}
