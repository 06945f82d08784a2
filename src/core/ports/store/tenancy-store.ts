import type { KeyRecord, OrgRecord, WorkspaceRecord } from '../../tenancy/tenancy.ts';

export interface TenancyStore {
  org(id: string): Promise<OrgRecord | null>;
  insertOrg(org: OrgRecord): Promise<void>;
  updateOrg(org: OrgRecord): Promise<void>;
  /** Lists all orgs by id, the deleted ones too: an id is never given twice. */
  orgs(): Promise<readonly OrgRecord[]>;
  workspace(id: string): Promise<WorkspaceRecord | null>;
  insertWorkspace(workspace: WorkspaceRecord): Promise<void>;
  updateWorkspace(workspace: WorkspaceRecord): Promise<void>;
  workspaces(orgId: string | null): Promise<readonly WorkspaceRecord[]>;
  key(id: string): Promise<KeyRecord | null>;
  keyByHash(secretHash: string): Promise<KeyRecord | null>;
  keyByNumber(number: number): Promise<KeyRecord | null>;
  /** The highest number that a key has; 0 when there is none. */
  lastKeyNumber(): Promise<number>;
  insertKey(key: KeyRecord): Promise<void>;
  updateKey(key: KeyRecord): Promise<void>;
  keys(workspaceId: string | null): Promise<readonly KeyRecord[]>;
}
