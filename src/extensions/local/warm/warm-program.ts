/**
 * Programs that run in a sandbox before its claim: the agent a second time and, where a profile names one, a program of its image
 * (`warm.program`). That program runs under the limits of the profile and before any variable, file or secret is inside. It is
 * not billed, so it gets little time, and must leave no process behind.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { SpawnSpec } from '../../../core/ports/session.ts';
import type { AgentSession } from '../../shared/agent-session/agent-session.ts';
import type { WarmRecipe } from './warm-pools.ts';

const PROGRAM_SECONDS = 10;
/** Only the first process, which is the agent. */
const PROCESSES_AT_REST = 1;
const LOOKS = 20;
const LOOK_MS = 50;
const MOST_REMEMBERED = 1_000;

async function run(agent: AgentSession, argv: readonly string[]): Promise<void> {
  const spec: SpawnSpec = {
    argv: [...argv],
    env: {},
    cwd: null,
    user: null,
    timeoutSeconds: PROGRAM_SECONDS,
    stdin: false,
    background: false,
    terminal: null,
  };
  const { output, exit } = await agent.spawn(spec);
  for await (const _ of output);
  await exit;
}

/** Runs the agent once, so that the files that every start needs are in the caches. */
export async function warmAgent(agent: AgentSession): Promise<void> {
  await run(agent, ['/.init', '--version']).catch(() => {});
}

/** State of a sandbox after a program in it has ended. */
interface Rest {
  readonly processes: number;
  /** Processes that were killed for want of memory. */
  readonly oomKills: number;
}

export class WarmPrograms {
  /** Programs that left processes behind, or ran out of memory. */
  readonly #unfit = new Set<string>();

  /**
   * Runs the program of the recipe, if it has one that may run. Resolves with `false` when it left processes behind, or ran out
   * of memory, which would be blamed on programs of the next user: the sandbox must go, and the program is not run again.
   */
  async run(agent: AgentSession, recipe: WarmRecipe, rest: () => Promise<Rest>): Promise<boolean> {
    const { program, limits, workspaceId, rootFs } = recipe;
    // Without these limits it could use up the machine.
    if (program === null || limits.memoryBytes === null || limits.pids === null) return true;
    const key = JSON.stringify([program, workspaceId, rootFs.layers]);
    if (this.#unfit.has(key)) return true;
    await run(agent, program).catch(() => {});
    for (let looks = 0; looks < LOOKS; looks++) {
      const { processes, oomKills } = await rest();
      if (oomKills > 0) break;
      if (processes === PROCESSES_AT_REST) return true;
      await sleep(LOOK_MS);
    }
    const [oldest] = this.#unfit;
    if (this.#unfit.size >= MOST_REMEMBERED && oldest !== undefined) this.#unfit.delete(oldest);
    this.#unfit.add(key);
    return false;
  }
}
