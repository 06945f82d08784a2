import type { SandboxerClient } from '../../client/sandboxer-client.ts';
import { SandboxerApiError } from '../../client/transport/api-error.ts';
import { SandboxerConnectionError } from '../../client/transport/connection-error.ts';
import type { CreateSandboxInput, Sandbox } from '../../contract/sandboxes/sandbox.ts';
import { CommandFailure } from '../failures/command-failure.ts';
import { EXIT } from '../failures/exit-code.ts';
import type { Printer } from '../output/printer.ts';

const ID_LETTERS = 'abcdefghijklmnopqrstuvwxyz0123456789';
/** Label of the run that a sandbox was made for, where its id alone does not show it. */
const MARK = 'sand-boxer.run';

function freshId(): string {
  const bytes = process.getBuiltinModule('node:crypto').randomBytes(12);
  return `run-${[...bytes].map((byte) => ID_LETTERS[byte % ID_LETTERS.length]).join('')}`;
}

/** Returns whether the server never had the request, or refused it before anything was written. */
function madeNothing(error: unknown): boolean {
  if (error instanceof SandboxerConnectionError) return !error.sent;
  if (!(error instanceof SandboxerApiError)) return false;
  return [400, 401, 403].includes(error.status) || error.code === 'SBX_ID_TAKEN';
}

/**
 * Sandbox of one run. Its id is known beforehand, so that it can be destroyed even when the answer to the create never came. A
 * given id may exist already: the request is then marked, so that no server answers it with an existing sandbox, and only a
 * sandbox with the mark is destroyed.
 */
export class OwnSandbox {
  readonly id: string;
  readonly #mark: string | null;
  #made: 'no' | 'maybe' | 'yes' = 'no';

  constructor(givenId: string | undefined) {
    const fresh = freshId();
    this.id = givenId ?? fresh;
    this.#mark = givenId === undefined ? null : fresh;
  }

  /** Makes the sandbox by the request of `work`. */
  async make(
    request: CreateSandboxInput,
    work: (request: CreateSandboxInput) => Promise<Sandbox>,
  ): Promise<Sandbox> {
    const labels = this.#mark === null ? {} : { labels: { ...request.labels, [MARK]: this.#mark } };
    this.#made = 'maybe';
    try {
      const sandbox = await work({ ...request, ...labels });
      this.#made = 'yes';
      return sandbox;
    } catch (error) {
      if (madeNothing(error)) this.#made = 'no';
      if (!(error instanceof SandboxerApiError) || error.code !== 'SBX_ID_TAKEN') throw error;
      throw new CommandFailure(error.message, {
        code: error.code,
        remedy: `Choose another id, or run it in that one: sandboxer exec ${this.id} -- <program>`,
        exitCode: EXIT.refused,
        cause: error,
      });
    }
  }

  async destroy(client: SandboxerClient, printer: Printer): Promise<void> {
    try {
      if (this.#made === 'yes' || (this.#made === 'maybe' && (await this.#isOurs(client))))
        await client.sandboxes.destroy(this.id, { wait: 'none' });
    } catch (error) {
      if (error instanceof SandboxerApiError && error.status === 404) return;
      printer.warn(`${this.id} was not destroyed: ${(error as Error).message}`);
    }
  }

  async #isOurs(client: SandboxerClient): Promise<boolean> {
    return this.#mark === null || (await client.sandboxes.get(this.id)).labels[MARK] === this.#mark;
  }
}
