import type { UploadRecord } from '../../assets/upload.ts';
import type { Page } from './page.ts';

export interface UploadQuery {
  readonly workspaceId: string | null;
  readonly cursor?: string | null;
  readonly limit: number;
}

export interface UploadStore {
  get(id: string): Promise<UploadRecord | null>;
  /** Inserts, or moves the expiry of the existing upload to the later time. Returns the stored row. */
  put(record: UploadRecord): Promise<UploadRecord>;
  /** A sandbox is made from it: it stays until that is destroyed. Repeating it is harmless. */
  use(uploadId: string, sandboxUid: string): Promise<void>;
  /** Whether a sandbox that is not destroyed was made from it. */
  inUse(id: string): Promise<boolean>;
  /** Newest first. */
  list(query: UploadQuery): Promise<Page<UploadRecord>>;
  /** Bytes of all uploads of a workspace: derived, never a counter. */
  totalBytes(workspaceId: string): Promise<number>;
  /** Past `expiresAt` and not in use, oldest first. */
  due(now: number, limit: number): Promise<readonly UploadRecord[]>;
  /** Removes an upload with the records of its use. */
  remove(id: string): Promise<void>;
}
