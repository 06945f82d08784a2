import type { AuditDraft, AuditRecord } from '../../tenancy/audit.ts';

export interface AuditQuery {
  /** `null` sees every workspace. */
  readonly workspaceId: string | null;
  readonly keyId?: string;
  readonly action?: string;
  readonly target?: string;
  /** Only records with a smaller number. */
  readonly before?: number;
  readonly limit: number;
}

/** Rows are written once and never changed. */
export interface AuditStore {
  append(drafts: readonly AuditDraft[]): Promise<void>;
  /** Newest first. */
  list(query: AuditQuery): Promise<readonly AuditRecord[]>;
  prune(before: number, limit: number): Promise<number>;
}
