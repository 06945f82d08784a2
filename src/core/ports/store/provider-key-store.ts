import type { ProviderKeyRecord } from '../../tenancy/provider-key.ts';

export interface ProviderKeyStore {
  get(id: string): Promise<ProviderKeyRecord | null>;
  /** The workspace's own, and the platform's before them. */
  usableBy(workspaceId: string): Promise<readonly ProviderKeyRecord[]>;
  /** The platform's first, then by workspace; by extension within each. */
  list(): Promise<readonly ProviderKeyRecord[]>;
  /** Rejects with `SBX_CONFLICT` where the workspace, or the platform, has one for that backend. */
  insert(record: ProviderKeyRecord): Promise<void>;
  /** Compare-and-set like sandboxes. */
  update(record: ProviderKeyRecord): Promise<ProviderKeyRecord>;
  remove(id: string): Promise<void>;
  /** Whether an attempt that is not gone, or a snapshot that is kept, was made with it. */
  isUsed(id: string): Promise<boolean>;
}
