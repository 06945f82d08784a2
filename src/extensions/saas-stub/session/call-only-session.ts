import { SandboxerError } from '../../../contract/errors/errors.ts';
import type { ExitStatus } from '../../../contract/sandboxes/exec.ts';
import type {
  AbortableOptions,
  SandboxProcess,
  SandboxSession,
  SpawnSpec,
} from '../../../core/ports/session.ts';

const DONE: ExitStatus = { code: 0, signal: null, timed_out: false, out_of_memory: false };

async function* nothing(): AsyncGenerator<never> {}

/** Session without a byte stream: every program ends at once, successfully and without output. */
export class CallOnlySession implements SandboxSession {
  readonly #run: (signal: AbortSignal) => Promise<void>;
  #spawned = 0;

  constructor(run: (signal: AbortSignal) => Promise<void>) {
    this.#run = run;
  }

  async spawn(spec: SpawnSpec, options?: AbortableOptions): Promise<SandboxProcess> {
    if (spec.terminal !== null || spec.user !== null || spec.background) {
      throw new SandboxerError(
        'SBX_UNSUPPORTED',
        'Without a byte stream there is neither terminal, user nor background.',
      );
    }
    await this.#run(options?.signal ?? new AbortController().signal);
    this.#spawned += 1;
    return {
      id: `p${this.#spawned}`,
      output: nothing(),
      exit: Promise.resolve(DONE),
      write: async () => {},
      endInput: async () => {},
      kill: async () => {},
      resize: async () => {},
      detach: async () => {},
    };
  }

  async close(): Promise<void> {}
}
