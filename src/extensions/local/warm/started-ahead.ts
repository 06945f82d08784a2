import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { AgentSession } from '../../shared/agent-session/agent-session.ts';
import type { OwnParts } from '../bundle/bundle-parts.ts';
import type { Engine, Machinery } from '../engine/engine.ts';
import { limitFields } from '../host/limits.ts';
import type { EarlyAgents } from '../session/early-agents.ts';
import type { Layout } from '../state/layout.ts';
import { rootFsFields } from '../state/root-fs.ts';
import type { WarmRecipe } from './warm-pools.ts';
import { WarmPools } from './warm-pools.ts';
import { WarmPrograms, warmAgent } from './warm-program.ts';

/** A running sandbox with an open channel, not claimed yet. */
export interface Ahead {
  readonly name: string;
  readonly range: number;
  readonly agent: AgentSession | null;
}

interface AheadParts {
  readonly engine: Engine;
  readonly layout: Layout;
  readonly early: EarlyAgents;
  takeRange(name: string, machinery: Machinery): number;
  writeBundle(name: string, own: Omit<OwnParts, 'place'>): void;
  /** Called when its directory is gone. */
  released(name: string): void;
}

const LIFE_MS = 3_600_000;
/** Sandboxes started ahead. Each claim gets one once, under its own name. */
export class StartedAhead {
  readonly #parts: AheadParts;
  readonly #pools: WarmPools<Ahead>;
  readonly #programs = new WarmPrograms();

  constructor(most: number, parts: AheadParts) {
    this.#parts = parts;
    this.#pools = new WarmPools(most, {
      make: (name, recipe) => this.#start(name, recipe),
      drop: (one) => void this.discard(one).catch(() => {}),
    });
  }

  take(recipe: WarmRecipe): Ahead | null {
    return this.#pools.take(recipe);
  }

  /** Keeps one ready for the most frequent request: the image `host`, with the limits of a profile that names none. */
  async expect(limits: WarmRecipe['limits']): Promise<void> {
    const { hostImage: rootFs } = await this.#parts.engine.machinery();
    const none = { workspaceId: null, openFiles: null, noNewPrivs: false, program: null };
    this.#pools.expect({ rootFs, ...none, limits });
  }

  /** Removes a sandbox that has ended by itself. */
  lose(name: string): void {
    this.#pools.lose(name);
  }

  /** Ends the sandboxes made from layers that are about to be removed. */
  forget(layers: readonly string[]): void {
    this.#pools.dissolve(({ rootFs }) => rootFs.layers.some((layer) => layers.includes(layer)));
  }

  /** Ends a sandbox that no request gets. */
  async discard({ name, agent }: Ahead): Promise<void> {
    const { engine, released } = this.#parts;
    void agent?.close();
    await engine.call('destroy', { id: name }).catch(() => {});
    released(name);
  }

  async close(): Promise<void> {
    for (const one of this.#pools.close()) await this.discard(one);
  }

  async #start(name: string, recipe: WarmRecipe): Promise<Ahead> {
    const { rootFs, openFiles, noNewPrivs, limits } = recipe;
    const { engine, layout, early, takeRange, writeBundle } = this.#parts;
    const machinery = await engine.machinery();
    const range = takeRange(name, machinery);
    mkdirSync(join(layout.sandboxes, name), { recursive: true, mode: 0o711 });
    writeBundle(name, {
      range,
      // The request that claims it may bring secrets.
      secretFiles: true,
      openFiles,
      noNewPrivs,
      process: rootFs.process,
      volumes: [],
      mounts: [],
      calls: false,
    });
    // It ends by itself without a claim, also after the end of the server.
    const ends_at = Date.now() + LIFE_MS;
    try {
      await machinery.client.call('create', {
        id: name,
        ...rootFsFields(rootFs),
        range,
        ends_at,
        keep: 0,
        // In force before any program runs; the claim may change them.
        ...limitFields(limits),
      });
    } catch (error) {
      await this.discard({ name, range, agent: null });
      throw error;
    }
    const agent = await early.take(name);
    const one = { name, range, agent };
    if (agent === null) return one;
    await warmAgent(agent);
    const rest = async () => {
      const { pids, oom_kills } = await machinery.client.call('status', { id: name });
      return { processes: Number(pids), oomKills: Number(oom_kills) };
    };
    if (await this.#programs.run(agent, recipe, rest)) return one;
    await this.discard(one);
    throw new Error('The program that its profile names left processes behind, or wanted for memory.');
  }
}
