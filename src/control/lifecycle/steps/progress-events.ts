import type { AttemptRecord } from '../../../core/lifecycle/attempt.ts';
import type { Progress } from '../../../core/ports/extension.ts';
import type { ControlPorts } from '../../ports/control-ports.ts';
import { AUTOMATION, SandboxEdit, saveEdit } from '../edit/sandbox-edit.ts';

const SHORTEST_GAP_MS = 1_000;
/** The pause between two events, as a share of the time taken so far: long attempts report more rarely. */
const GAP_SHARE = 0.1;
/** The most events of one attempt, whatever its backend reports. Half an hour comes to about sixty. */
const MOST = 200;

/**
 * Writes the progress of one attempt as events of its sandbox: stored like all others, so that a later reader sees where the time
 * went. Begin and end are always written; in between there are few, and fewer as it goes on.
 */
export class ProgressEvents {
  readonly #deps: ControlPorts;
  readonly #attempt: AttemptRecord;
  #begunAt: number | null = null;
  #toldAt = 0;
  #count = 0;
  #writing: Promise<void> = Promise.resolve();

  constructor(deps: ControlPorts, attempt: AttemptRecord) {
    this.#deps = deps;
    this.#attempt = attempt;
  }

  readonly tell = (progress: Progress): void => {
    const now = this.#deps.clock.now();
    this.#begunAt ??= now;
    const gap = Math.max(SHORTEST_GAP_MS, (now - this.#begunAt) * GAP_SHARE);
    if (this.#count >= MOST || (progress.phase === 'going' && now - this.#toldAt < gap)) return;
    this.#toldAt = now;
    this.#count += 1;
    this.#writing = this.#writing.then(() => this.#write(progress));
  };

  /** Resolves when all progress events are stored, so that none comes after the outcome. Never rejects. */
  async written(): Promise<void> {
    await this.#writing;
  }

  async #write({ stage, subject, phase, bytes, parts }: Progress): Promise<void> {
    const deps = this.#deps;
    const { sandboxUid, generation, n, extensionId, hostId } = this.#attempt;
    try {
      await deps.store.transaction('progress', async (tx) => {
        const row = await tx.sandboxes.get(sandboxUid);
        if (row?.state !== 'provisioning' || row.generation !== generation) return;
        const edit = new SandboxEdit(row, deps, deps.clock.now());
        edit.note('sandbox.progress', AUTOMATION, {
          attempt: n,
          extension: extensionId,
          host: hostId,
          stage,
          subject,
          phase,
          bytes: { ...bytes },
          parts: { ...parts },
        });
        await saveEdit(tx, deps, edit);
      });
    } catch (error) {
      deps.log.warn({ err: error, sandbox: sandboxUid }, 'how far an attempt is could not be told');
    }
  }
}
