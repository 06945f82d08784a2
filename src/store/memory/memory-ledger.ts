import type { LedgerStore } from '../../core/store.ts';
import type { HoldRecord, TransferDraft, TransferRecord } from '../../core/transfer.ts';
import { conflict } from '../rejections.ts';
import { assertTransfers, isHeldAccount, transferExists } from '../transfer-rules.ts';
import type { MemoryJournal } from './memory-journal.ts';
import { MemoryTable } from './memory-table.ts';

/** Sums follow the rows, one for one, forwards and back: they are integers, so nothing is lost. */
export class MemoryLedger implements LedgerStore {
  readonly #journal: MemoryJournal;
  readonly #holds: MemoryTable<HoldRecord>;
  readonly #rows: TransferRecord[] = [];
  readonly #byId = new Map<string, TransferRecord>();
  readonly #byWorkspace = new Map<string, TransferRecord[]>();
  readonly #balances = new Map<string, number>();
  readonly #held = new Map<string, number>();
  readonly #granted = new Map<string, number>();

  constructor(journal: MemoryJournal) {
    this.#journal = journal;
    this.#holds = new MemoryTable(journal);
  }

  async transfer(drafts: readonly TransferDraft[]): Promise<void> {
    this.#journal.assertWritable();
    assertTransfers(drafts);
    for (const { id } of drafts) if (this.#byId.has(id)) throw transferExists(id);
    for (const draft of drafts) {
      const record = { ...draft, seq: this.#rows.length + 1 };
      this.#rows.push(record);
      this.#byId.set(record.id, record);
      const ofWorkspace = this.#byWorkspace.get(record.workspaceId);
      if (ofWorkspace === undefined) this.#byWorkspace.set(record.workspaceId, [record]);
      else ofWorkspace.push(record);
      this.#add(record, 1);
      this.#journal.wrote(() => {
        this.#rows.pop();
        this.#byId.delete(record.id);
        this.#byWorkspace.get(record.workspaceId)?.pop();
        this.#add(record, -1);
      });
    }
  }

  async getTransfer(id: string): Promise<TransferRecord | null> {
    return this.#byId.get(id) ?? null;
  }

  async balance(account: string): Promise<number> {
    return this.#balances.get(account) ?? 0;
  }

  async granted(workspaceId: string): Promise<number> {
    return this.#granted.get(workspaceId) ?? 0;
  }

  async held(holdId: string): Promise<number> {
    return this.#held.get(holdId) ?? 0;
  }

  async insertHold(hold: HoldRecord): Promise<void> {
    this.#journal.assertWritable();
    if (this.#holds.has(hold.id)) throw conflict(`The hold ${hold.id} exists.`);
    this.#holds.set(hold.id, hold);
  }

  async getHold(id: string): Promise<HoldRecord | null> {
    return this.#holds.get(id) ?? null;
  }

  async updateHold(hold: HoldRecord): Promise<void> {
    this.#journal.assertWritable();
    if (!this.#holds.has(hold.id)) throw conflict(`The hold ${hold.id} is gone.`);
    this.#holds.set(hold.id, hold);
  }

  async transfers(query: {
    readonly workspaceId: string | null;
    readonly after: number;
    readonly limit: number;
  }): Promise<readonly TransferRecord[]> {
    const rows = query.workspaceId === null ? this.#rows : (this.#byWorkspace.get(query.workspaceId) ?? []);
    return rows.filter(({ seq }) => seq > query.after).slice(0, query.limit);
  }

  rows(): readonly TransferRecord[] {
    return this.#rows;
  }

  #add({ kind, debit, credit, amountMicroUsd, workspaceId, holdId }: TransferDraft, sign: 1 | -1): void {
    const amount = sign * amountMicroUsd;
    if (kind === 'grant') addTo(this.#granted, workspaceId, amount);
    addTo(this.#balances, debit, -amount);
    addTo(this.#balances, credit, amount);
    if (holdId === null) return;
    if (isHeldAccount(debit)) addTo(this.#held, holdId, -amount);
    if (isHeldAccount(credit)) addTo(this.#held, holdId, amount);
  }
}

function addTo(sums: Map<string, number>, key: string, amount: number): void {
  sums.set(key, (sums.get(key) ?? 0) + amount);
}
