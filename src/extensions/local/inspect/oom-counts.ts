import type { OomKills } from '../../shared/channel/judged-channel.ts';

/** OOM kills of each sandbox, by the name of its directory: one count for all channels to it. */
export class OomCounts {
  readonly #ask: (name: string) => Promise<number>;
  readonly #kills = new Map<string, OomKills>();

  constructor(ask: (name: string) => Promise<number>) {
    this.#ask = ask;
  }

  /** Begins the count of a sandbox that has just been started: no process was killed yet. */
  begin(name: string): void {
    this.#kills.set(name, { known: 0, count: () => this.#ask(name) });
  }

  async of(name: string): Promise<OomKills> {
    const known = this.#kills.get(name);
    if (known !== undefined) return known;
    this.begin(name);
    const kills = this.#kills.get(name) as OomKills;
    // An earlier process started it: kills until now were reported before.
    kills.known = await kills.count().catch(() => 0);
    return kills;
  }

  forget(name: string): void {
    this.#kills.delete(name);
  }
}
