import type { TenancyStore } from '../../core/ports/store/tenancy-store.ts';
import type { KeyRecord, OrgRecord, WorkspaceRecord } from '../../core/tenancy/tenancy.ts';
import { conflict } from '../rejections.ts';
import type { MemoryJournal } from './memory-journal.ts';
import { MemoryTable } from './memory-table.ts';

export class MemoryTenancy implements TenancyStore {
  readonly #journal: MemoryJournal;
  readonly #orgs: MemoryTable<OrgRecord>;
  readonly #workspaces: MemoryTable<WorkspaceRecord>;
  readonly #keys: MemoryTable<KeyRecord>;
  readonly #keyIdByHash: MemoryTable<string>;

  constructor(journal: MemoryJournal) {
    this.#journal = journal;
    this.#orgs = new MemoryTable(journal);
    this.#workspaces = new MemoryTable(journal);
    this.#keys = new MemoryTable(journal);
    this.#keyIdByHash = new MemoryTable(journal);
  }

  async org(id: string): Promise<OrgRecord | null> {
    return this.#orgs.get(id) ?? null;
  }

  async insertOrg(org: OrgRecord): Promise<void> {
    this.#journal.assertWritable();
    if (this.#orgs.has(org.id)) throw conflict(`The org ${org.id} exists.`);
    this.#orgs.set(org.id, org);
  }

  async updateOrg(org: OrgRecord): Promise<void> {
    this.#journal.assertWritable();
    if (!this.#orgs.has(org.id)) throw conflict(`The org ${org.id} is gone.`);
    this.#orgs.set(org.id, org);
  }

  async orgs(): Promise<readonly OrgRecord[]> {
    return [...this.#orgs.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
  }

  async workspace(id: string): Promise<WorkspaceRecord | null> {
    return this.#workspaces.get(id) ?? null;
  }

  async insertWorkspace(workspace: WorkspaceRecord): Promise<void> {
    this.#journal.assertWritable();
    if (this.#workspaces.has(workspace.id)) throw conflict(`The workspace ${workspace.id} exists.`);
    this.#workspaces.set(workspace.id, workspace);
  }

  async updateWorkspace(workspace: WorkspaceRecord): Promise<void> {
    this.#journal.assertWritable();
    if (!this.#workspaces.has(workspace.id)) throw conflict(`The workspace ${workspace.id} is gone.`);
    this.#workspaces.set(workspace.id, workspace);
    this.#journal.changedWorkspace(workspace);
  }

  async workspaces(orgId: string | null): Promise<readonly WorkspaceRecord[]> {
    return [...this.#workspaces.values()]
      .filter((workspace) => orgId === null || workspace.orgId === orgId)
      .sort((a, b) => (a.id < b.id ? -1 : 1));
  }

  async key(id: string): Promise<KeyRecord | null> {
    return this.#keys.get(id) ?? null;
  }

  async keyByHash(secretHash: string): Promise<KeyRecord | null> {
    const id = this.#keyIdByHash.get(secretHash);
    return id === undefined ? null : (this.#keys.get(id) ?? null);
  }

  async keyByNumber(number: number): Promise<KeyRecord | null> {
    return [...this.#keys.values()].find((key) => key.number === number) ?? null;
  }

  async lastKeyNumber(): Promise<number> {
    return [...this.#keys.values()].reduce((last, { number }) => Math.max(last, number), 0);
  }

  async insertKey(key: KeyRecord): Promise<void> {
    this.#journal.assertWritable();
    if (this.#keys.has(key.id) || this.#keyIdByHash.has(key.secretHash)) {
      throw conflict(`The key ${key.id} exists.`);
    }
    this.#keys.set(key.id, key);
    this.#keyIdByHash.set(key.secretHash, key.id);
  }

  /** The secret of a key never changes: another secret is another key. */
  async updateKey(key: KeyRecord): Promise<void> {
    this.#journal.assertWritable();
    if (this.#keys.get(key.id)?.secretHash !== key.secretHash) throw conflict(`The key ${key.id} is gone.`);
    this.#keys.set(key.id, key);
    this.#journal.changedKey(key);
  }

  async keys(workspaceId: string | null): Promise<readonly KeyRecord[]> {
    return [...this.#keys.values()]
      .filter((key) => workspaceId === null || key.workspaceId === workspaceId)
      .sort((a, b) => a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1));
  }
}
