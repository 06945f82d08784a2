import { WarmPool } from '../../shared/warm-pool.ts';
import type { SandboxRecord } from '../state/record.ts';
import type { RootFs } from '../state/root-fs.ts';

/** All that the runtime is told at the start; whatever else a recipe says is given to a sandbox that runs already. */
export interface WarmRecipe {
  readonly rootFs: RootFs;
  /**
   * The one whose image or program it is: such a sandbox is for that workspace alone. `null` for what the host itself shows.
   */
  readonly workspaceId: string | null;
  readonly openFiles: number | null;
  readonly noNewPrivs: boolean;
  /** Those of the last request, in force from the start: the next one will want the same, or have them changed. */
  readonly limits: SandboxRecord['limits'];
  /** Run before anybody claims it, under these limits and no others; `null` for none. */
  readonly program: readonly string[] | null;
}

/** Recipes with the same one share what waits. */
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
  /** As it was asked for last. */
  recipe: WarmRecipe;
  readonly pool: WarmPool<One>;
  timer: NodeJS.Timeout | null;
  /** Kept also when nobody asks. */
  expected: boolean;
}

interface Makers<One extends Named> {
  make(name: string, recipe: WarmRecipe): Promise<One>;
  /** Nobody will come for it. */
  drop(one: One): void;
}

/** Nobody has asked for that recipe for so long: nothing of it is kept running. */
const FORGOTTEN_MS = 600_000;

/** A pool for each recipe that is asked for; all of them together have so many at the most. */
export class WarmPools<One extends Named> {
  readonly #most: number;
  readonly #makers: Makers<One>;
  readonly #forgottenMs: number;
  /** Last asked for last. */
  readonly #pools = new Map<string, Entry<One>>();

  constructor(most: number, makers: Makers<One>, forgottenMs = FORGOTTEN_MS) {
    this.#most = most;
    this.#makers = makers;
    this.#forgottenMs = forgottenMs;
  }

  /** One that is ready, or `null`; either way there will be one for whoever comes next. */
  take(recipe: WarmRecipe): One | null {
    if (this.#most === 0) return null;
    const entry = this.#askedFor(recipe);
    if (entry.pool.size === 0) this.#makeRoom(entry);
    return entry.pool.take();
  }

  /** Has one ready before anybody asks, and from then on. */
  expect(recipe: WarmRecipe): void {
    if (this.#most === 0) return;
    const entry = this.#askedFor(recipe);
    entry.expected = true;
    if (entry.timer !== null) clearTimeout(entry.timer);
    entry.pool.fill();
  }

  /** It has gone by itself. */
  lose(name: string): void {
    for (const { pool } of this.#pools.values()) pool.lose(name);
  }

  /** What those that wait are made from is about to go. */
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

  /** Of the recipes that were asked for longest ago, until there is room for one of this: those under way may come later. */
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
