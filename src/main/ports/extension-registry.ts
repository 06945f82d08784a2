import type { ExtensionHealth } from '../../contract/extensions/extension.ts';
import type { Clock } from '../../core/ports/clock.ts';
import { isoTime } from '../../core/ports/clock.ts';
import type { Extension } from '../../core/ports/extension.ts';
import type { Log } from '../../core/ports/log.ts';
import type { ExtensionRegistry } from '../../core/ports/registry.ts';
import { digestOf } from '../../core/recipe/canonical-json.ts';

const PROBE_TIMEOUT_MS = 10_000;
const UNKNOWN: ExtensionHealth = {
  status: 'unknown',
  detail: 'not probed yet',
  checked_at: null,
  checks: [],
};

/** Holds the backends and asks each how it is, apart from the others. */
export class ProbedExtensions implements ExtensionRegistry {
  readonly version: string;
  readonly #extensions: ReadonlyMap<string, Extension>;
  readonly #health = new Map<string, ExtensionHealth>();
  readonly #clock: Clock;
  readonly #log: Log;

  constructor(extensions: readonly Extension[], clock: Clock, log: Log) {
    this.#extensions = new Map(extensions.map((extension) => [extension.header.id, extension]));
    this.#clock = clock;
    this.#log = log;
    this.version = digestOf(extensions.map((extension) => extension.header));
  }

  get(id: string): Extension | undefined {
    return this.#extensions.get(id);
  }

  all(): readonly Extension[] {
    return [...this.#extensions.values()];
  }

  health(id: string): ExtensionHealth {
    return this.#health.get(id) ?? UNKNOWN;
  }

  async probeAll(signal: AbortSignal): Promise<void> {
    await Promise.all(this.all().map((extension) => this.#probe(extension, signal)));
  }

  async #probe(extension: Extension, stop: AbortSignal): Promise<void> {
    const { id } = extension.header;
    const signal = AbortSignal.any([stop, AbortSignal.timeout(PROBE_TIMEOUT_MS)]);
    try {
      this.#health.set(id, await extension.probe({ signal, clock: this.#clock, log: this.#log, host: null }));
    } catch (error) {
      if (stop.aborted) return;
      const detail = error instanceof Error ? error.message : 'its probe failed';
      this.#health.set(id, {
        status: 'unhealthy',
        detail,
        checked_at: isoTime(this.#clock.now()),
        checks: [],
      });
    }
  }
}
