/** A trial under way: written before the backend is called, removed when nothing of it is left. */
export interface CanaryRecord {
  readonly attemptId: string;
  readonly sandboxUid: string;
  readonly hostId: string;
  readonly extensionId: string;
  readonly startedAt: number;
}
