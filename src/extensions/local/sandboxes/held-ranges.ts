import { SandboxerError } from '../../../contract/errors/errors.ts';
import type { Machinery } from '../engine/engine.ts';
import { STORAGE_RANGE, UidRanges } from '../engine/uid-ranges.ts';
import type { HostFacts } from '../host/host-facts.ts';
import type { Layout } from '../state/layout.ts';
import type { Records } from './records.ts';

/** Ids of each sandbox, by the name of its directory: from before that is made until it is gone. */
export class HeldRanges {
  readonly #facts: HostFacts;
  readonly #layout: Layout;
  readonly #records: Records;
  readonly #held = new Map<string, number>();
  #ranges: UidRanges | null = null;

  constructor(facts: HostFacts, layout: Layout, records: Records) {
    this.#facts = facts;
    this.#layout = layout;
    this.#records = records;
  }

  has(name: string): boolean {
    return this.#held.has(name);
  }

  take(name: string, machinery: Machinery): number {
    const first = this.#next(machinery);
    this.#held.set(name, first);
    return first;
  }

  /** Renames the holder: a claimed sandbox keeps its ids. */
  rename(from: string, to: string): void {
    const first = this.#held.get(from);
    if (first === undefined) return;
    this.#held.delete(from);
    this.#held.set(to, first);
  }

  /** Frees the ids of a sandbox whose directory is gone. */
  give(name: string): void {
    const first = this.#held.get(name);
    if (first === undefined) return;
    this.#held.delete(name);
    this.#ranges?.give(first);
  }

  #next(machinery: Machinery): number {
    if (!this.#facts.root) return this.#facts.subordinate === null ? 0 : 1;
    if (!machinery.idmap) return STORAGE_RANGE;
    this.#ranges ??= this.#read();
    const first = this.#ranges.take();
    if (first !== null) return first;
    throw new SandboxerError('SBX_BACKEND_QUOTA', 'All ranges of user ids are in use.', {
      backend: 'ext.local',
      creation: 'not_created',
    });
  }

  #read(): UidRanges {
    for (const { attemptId, range } of this.#records.all())
      this.#held.set(this.#layout.name(attemptId), range);
    return new UidRanges(this.#held.values(), this.#layout.base);
  }
}
