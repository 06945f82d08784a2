import type { KeptResource } from '../../assets/kept-resource.ts';

/** Images, or volumes. */
export interface KeptStore<R extends KeptResource> {
  get(id: string): Promise<R | null>;
  insert(record: R): Promise<void>;
  /** Compare-and-set like sandboxes. */
  update(record: R): Promise<R>;
  remove(id: string): Promise<void>;
  /** Oldest first: the workspace's own and the shared ones, or all with `null`. */
  list(workspaceId: string | null): Promise<readonly R[]>;
  /** `deleting`, or past `expiresAt`. */
  due(now: number, limit: number): Promise<readonly R[]>;
}
