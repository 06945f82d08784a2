import { WarmPool } from '../../shared/warm-pool.ts';
import type { SandboxRecord } from '../state/record.ts';
import type { RootFs } from '../state/root-fs.ts';

/** The settings that the runtime gets at the start; everything else of a recipe is given to a running sandbox. */
export interface WarmRecipe {
  readonly rootFs: RootFs;
  /**
   * Workspace of its image or program: such a sandbox is for that workspace alone. `null`: it shows only the host's files.
   */
  readonly workspaceId: string | null;
  readonly openFiles: number | null;
  readonly noNewPrivs: boolean;
  /** Limits of the last request, in force from the start: the next request mostly has the same, or changes them. */
  readonly limits: SandboxRecord['limits'];
  /** Program that runs before the claim, only under these limits; `null` for none. */
  readonly program: readonly string[] | null;
}

/** Returns the key of a recipe: recipes with the same key share their waiting sandboxes. */
function keyOf({ rootFs, workspaceId, openFiles, noNewPrivs, limits, program }: WarmRecipe): string {
  const { layers, host, process } = rootFs;
  const { memoryBytes, pids, cpuMillis } = limits;
  const ofProgram = program === null ? null : [program, memoryBytes, pids, cpuMillis];
  return JSON.stringify([layers, host, process, workspaceId, openFiles, noNewPrivs, ofProgram]);
}

interface Named {
  readonly name: string;
}

interface Entry<One extends Named> {
  /** The recipe as last requested. */
  recipe: WarmRecipe;
  readonly pool: WarmPool<One>;
  timer: NodeJS.Timeout | null;
  /** Whether it stays without requests. */
  expected: boolean;
}

interface Makers<One extends Named> {
  make(name: string, recipe: WarmRecipe): Promise<One>;
  /** Called for a sandbox that no request will claim. */
  drop(one: One): void;
}

/** Time without a request after which a recipe keeps no sandbox. */
const FORGOTTEN_MS = 600_000;

/** Pool for each requested recipe; together they have at most so many sandboxes. */
export class WarmPools<One extends Named> {
  readonly #most: number;
  readonly #makers: Makers<One>;
  readonly #forgottenMs: number;
  /** Pools, last requested last. */
  readonly #pools = new Map<string, Entry<One>>();

  constructor(most: number, makers: Makers<One>, forgottenMs = FORGOTTEN_MS) {
    this.#most = most;
    this.#makers = makers;
    this.#forgottenMs = forgottenMs;
  }

  /** Takes a ready sandbox, or `null`; either way the pool is filled for the next request. */
  take(recipe: WarmRecipe): One | null {
    if (this.#most === 0) return null;
    const entry = this.#askedFor(recipe);
    if (entry.pool.size === 0) this.#makeRoom(entry);
    return entry.pool.take();
  }

  /** Keeps a sandbox ready from now on, before the first request. */
  expect(recipe: WarmRecipe): void {
    if (this.#most === 0) return;
    const entry = this.#askedFor(recipe);
    entry.expected = true;
    if (entry.timer !== null) clearTimeout(entry.timer);
    entry.pool.fill();
  }

  /** Removes a sandbox that has ended by itself. */
  lose(name: string): void {
    for (const { pool } of this.#pools.values()) pool.lose(name);
  }

  /** Ends the pools of recipes whose layers are about to be removed. */
  dissolve(uses: (recipe: WarmRecipe) => boolean): void {
    for (const [key, entry] of [...this.#pools]) if (uses(entry.recipe)) this.#forget(key, entry);
  }

  close(): readonly One[] {
    const left = [...this.#pools.values()].flatMap(({ pool, timer }) => {
      if (timer !== null) clearTimeout(timer);
      return pool.close();
    });
    this.#pools.clear();
    return left;
  }

  #askedFor(recipe: WarmRecipe): Entry<One> {
    const key = keyOf(recipe);
    const entry = this.#pools.get(key) ?? this.#begin(recipe);
    entry.recipe = recipe;
    this.#pools.delete(key);
    this.#pools.set(key, entry);
    if (entry.expected) return entry;
    if (entry.timer !== null) clearTimeout(entry.timer);
    entry.timer = setTimeout(() => this.#forget(key, entry), this.#forgottenMs);
    entry.timer.unref();
    return entry;
  }

  #begin(recipe: WarmRecipe): Entry<One> {
    const { make, drop } = this.#makers;
    const pool: WarmPool<One> = new WarmPool(
      () => this.#most - this.#readyBesides(pool),
      (name) => make(name, entry.recipe),
      drop,
    );
    const entry: Entry<One> = { recipe, pool, timer: null, expected: false };
    return entry;
  }

  #readyBesides(own: WarmPool<One>): number {
    let ready = 0;
    for (const { pool } of this.#pools.values()) if (pool !== own) ready += pool.size;
    return ready;
  }

  /** Ends sandboxes of the recipes requested longest ago, until there is room for this one: those under way may come later. */
  #makeRoom(entry: Entry<One>): void {
    for (const { pool } of this.#pools.values()) {
      while (pool !== entry.pool && this.#readyBesides(entry.pool) >= this.#most) {
        const one = pool.shed();
        if (one === null) break;
        this.#makers.drop(one);
      }
    }
  }

  #forget(key: string, { pool, timer }: Entry<One>): void {
    if (timer !== null) clearTimeout(timer);
    this.#pools.delete(key);
    for (const one of pool.close()) this.#makers.drop(one);
  }
}
