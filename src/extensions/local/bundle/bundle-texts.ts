import type { SeccompSetting } from '../engine/engine.ts';
import { STORAGE_RANGE } from '../engine/uid-ranges.ts';
import type { HostFacts } from '../host/host-facts.ts';
import { bundleConfig } from './bundle.ts';
import type { OwnParts } from './bundle-parts.ts';
import { bundleParts } from './bundle-parts.ts';

const MOST_KEPT = 64;

/** The first id of a range, as a mapping has it. No other text can contain it: in a string its quotes would be escaped. */
const firstId = (first: number) => `"hostID":${first}`;

/**
 * Configurations of bundles as text. Two sandboxes of a recipe differ only in their ids: the common text is made and formatted
 * once.
 */
export class BundleTexts {
  readonly #facts: HostFacts;
  /** Texts around the ids, by all other parts. */
  readonly #kept = new Map<string, readonly string[]>();

  constructor(facts: HostFacts) {
    this.#facts = facts;
  }

  of(own: OwnParts, seccomp: SeccompSetting | null): string {
    const { range, ...rest } = own;
    const compiled = seccomp !== null && 'bpf' in seccomp;
    const key = JSON.stringify([rest, range === STORAGE_RANGE, compiled]);
    let around = this.#kept.get(key);
    if (around === undefined) {
      const text = JSON.stringify(bundleConfig(bundleParts(own, this.#facts, seccomp)));
      around = text.split(firstId(range));
      if (this.#kept.size >= MOST_KEPT) this.#kept.clear();
      this.#kept.set(key, around);
    }
    return around.join(firstId(range));
  }
}
