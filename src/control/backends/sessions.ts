import { SandboxerError } from '../../contract/errors/errors.ts';
import type { SandboxRecord } from '../../core/lifecycle/sandbox.ts';
import type { Handle } from '../../core/ports/extension.ts';
import type { SandboxProcess, SandboxSession } from '../../core/ports/session.ts';
import type { ControlPorts } from '../ports/control-ports.ts';
import { contextOf, extensionOf } from './backend-context.ts';
import { within } from './within.ts';

type Variables = Readonly<Record<string, string>>;

interface OpenSession {
  readonly generation: number;
  readonly session: Promise<SandboxSession>;
  opened: SandboxSession | null;
}

/** Keeps the open channel of each sandbox: opened at first use, shared, closed when the sandbox is over. */
export class Sessions {
  readonly #deps: ControlPorts;
  readonly #open = new Map<string, OpenSession>();
  readonly #closing = new AbortController();
  readonly #variables = new Map<string, { readonly generation: number; readonly values: Variables }>();
  /** Foreground processes by `uid:process id`: attaching to one and letting go again would kill it. */
  readonly running = new Map<string, SandboxProcess>();

  constructor(deps: ControlPorts) {
    this.#deps = deps;
  }

  /** The recipe's, where they are known: an exec need not read the recipe then. */
  variables(uid: string, generation: number): Variables | null {
    const known = this.#variables.get(uid);
    return known?.generation === generation ? known.values : null;
  }

  learn(uid: string, generation: number, values: Variables): void {
    this.#variables.set(uid, { generation, values });
  }

  async of(sandbox: SandboxRecord): Promise<SandboxSession> {
    const known = this.#open.get(sandbox.uid);
    if (known?.generation === sandbox.generation && known.opened?.isLost !== true) return known.session;
    if (known) this.drop(sandbox.uid);
    const extension = extensionOf(this.#deps, sandbox.extensionId as string);
    // The time limit keeps a backend that never answers from blocking every later caller of this session.
    const { settings } = this.#deps;
    const closing = this.#closing.signal;
    const session = within(this.#deps, settings.operationTimeoutMs, closing, async (given) =>
      extension.connect(
        sandbox.handle as Handle,
        await contextOf(this.#deps, sandbox, AbortSignal.any([closing, given])),
      ),
    );
    const entry: OpenSession = { generation: sandbox.generation, session, opened: null };
    this.#open.set(sandbox.uid, entry);
    session.then(
      (opened) => {
        entry.opened = opened;
      },
      () => {
        if (this.#open.get(sandbox.uid) === entry) this.#open.delete(sandbox.uid);
      },
    );
    return session;
  }

  /** Drops the session after its channel failed or the sandbox ended: the next use opens a new one. */
  drop(uid: string): void {
    this.#variables.delete(uid);
    const known = this.#open.get(uid);
    if (!known) return;
    this.#open.delete(uid);
    known.session.then((session) => session.close()).catch(() => {});
  }

  get isClosing(): boolean {
    return this.#closing.signal.aborted;
  }

  async close(): Promise<void> {
    this.#closing.abort(new SandboxerError('SBX_UNAVAILABLE', 'The server is stopping.'));
    for (const uid of [...this.#open.keys()]) this.drop(uid);
  }
}
