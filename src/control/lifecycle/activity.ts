import type { SandboxRecord } from '../../core/lifecycle/sandbox.ts';
import type { Tx } from '../../core/ports/store/store.ts';
import type { ControlPorts } from '../ports/control-ports.ts';
import { SandboxEdit, saveEdit } from './edit/sandbox-edit.ts';

/**
 * Counts use of a sandbox (SPEC §3): exec, terminal, file write. Use is written when it changes the state and at most every
 * `activityMs` otherwise; between two writes it is held in memory here, for the idle sweep to ask.
 */
export class Activity {
  readonly #deps: ControlPorts;
  readonly #last = new Map<string, number>();
  readonly #open = new Map<string, number>();

  constructor(deps: ControlPorts) {
    this.#deps = deps;
  }

  /** The latest use known to this process; now, while something is running. */
  lastUse(uid: string): number | null {
    if ((this.#open.get(uid) ?? 0) > 0) return this.#deps.clock.now();
    return this.#last.get(uid) ?? null;
  }

  async touch(sandbox: SandboxRecord): Promise<void> {
    const { clock, settings } = this.#deps;
    const now = clock.now();
    this.#last.set(sandbox.uid, now);
    const written = sandbox.lastActivityAt ?? 0;
    if (sandbox.state !== 'ready' && now - written < settings.activityMs) return;
    await this.write(sandbox.uid, now);
  }

  /** Counts as use until the returned function is called; that end is use, too. */
  begin(uid: string): () => void {
    this.#open.set(uid, (this.#open.get(uid) ?? 0) + 1);
    let ended = false;
    return () => {
      if (ended) return;
      ended = true;
      const left = (this.#open.get(uid) ?? 1) - 1;
      if (left > 0) this.#open.set(uid, left);
      else this.#open.delete(uid);
      this.#last.set(uid, this.#deps.clock.now());
    };
  }

  forget(uid: string): void {
    this.#last.delete(uid);
  }

  /** Writes a use without waiting for the disk: a use may be lost with the machine. */
  async write(uid: string, at: number): Promise<void> {
    const deps = this.#deps;
    const touch = async (tx: Tx) => {
      const row = await tx.sandboxes.get(uid);
      if (!row || (row.state !== 'ready' && row.state !== 'active')) return;
      // Use of an earlier generation does not count for this one.
      if (at < (row.readyAt ?? 0)) return;
      if ((row.lastActivityAt ?? 0) >= at && row.state === 'active') return;
      const edit = new SandboxEdit(row, deps, deps.clock.now());
      edit.patch({ lastActivityAt: at });
      if (row.state === 'ready') edit.move('active', { actor: row.actor }, { reason: 'first use' });
      await saveEdit(tx, deps, edit);
    };
    await deps.store.transaction('touch', touch, { answersEarly: () => true });
  }
}
