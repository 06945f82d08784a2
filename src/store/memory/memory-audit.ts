import type { AuditQuery, AuditStore } from '../../core/ports/store/audit-store.ts';
import type { AuditDraft, AuditRecord } from '../../core/tenancy/audit.ts';
import type { MemoryJournal } from './memory-journal.ts';

export class MemoryAudit implements AuditStore {
  readonly #journal: MemoryJournal;
  #log: readonly AuditRecord[] = [];
  #lastSeq = 0;

  constructor(journal: MemoryJournal) {
    this.#journal = journal;
  }

  async append(drafts: readonly AuditDraft[]): Promise<void> {
    this.#journal.assertWritable();
    const added = drafts.map((draft, i) => ({ ...draft, seq: this.#lastSeq + 1 + i }));
    this.#replace([...this.#log, ...added], this.#lastSeq + added.length);
  }

  async list({ workspaceId, keyId, action, target, before, limit }: AuditQuery) {
    const wanted = (record: AuditRecord) =>
      (workspaceId === null || record.workspaceId === workspaceId) &&
      (keyId === undefined || record.keyId === keyId) &&
      (action === undefined || record.action === action) &&
      (target === undefined || record.target === target) &&
      (before === undefined || record.seq < before);
    return this.#log.filter(wanted).reverse().slice(0, limit);
  }

  async prune(before: number, limit: number): Promise<number> {
    this.#journal.assertWritable();
    const old = this.#log
      .filter(({ at }) => at < before)
      .sort((a, b) => a.at - b.at || a.seq - b.seq)
      .slice(0, limit);
    if (old.length === 0) return 0;
    const gone = new Set(old);
    this.#replace(
      this.#log.filter((record) => !gone.has(record)),
      this.#lastSeq,
    );
    return old.length;
  }

  #replace(log: readonly AuditRecord[], lastSeq: number): void {
    const before = { log: this.#log, lastSeq: this.#lastSeq };
    this.#journal.wrote(() => {
      this.#log = before.log;
      this.#lastSeq = before.lastSeq;
    });
    this.#log = log;
    this.#lastSeq = lastSeq;
  }
}
