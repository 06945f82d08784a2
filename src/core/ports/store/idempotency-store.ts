export interface IdempotencyRecord {
  readonly workspaceId: string;
  readonly key: string;
  readonly requestDigest: string;
  /** `sandbox:<uid>` or `snapshot:<id>`. */
  readonly result: string;
  readonly createdAt: number;
}

export interface IdempotencyStore {
  get(workspaceId: string, key: string): Promise<IdempotencyRecord | null>;
  insert(record: IdempotencyRecord): Promise<void>;
  prune(before: number, limit: number): Promise<number>;
}
