import type { TreeOrigin } from '../recipe/tree-input.ts';

/** The row of a staged archive; its bytes lie in the blob store under its id. */
export interface UploadRecord {
  readonly id: string;
  readonly workspaceId: string;
  readonly digest: string;
  readonly sizeBytes: number;
  readonly entries: number;
  readonly origin: TreeOrigin;
  readonly createdAt: number;
  /** When the upload expires, unless a sandbox that is not destroyed was made from it. */
  readonly expiresAt: number;
}
