import type { Amount } from '../../../core/ports/extension.ts';
import type { PullStep } from '../engine/engine-replies.ts';

const MOST_LAYERS = 512;
/** Status messages of a layer. At the beginning the same member `id` names the tag. */
const OF_LAYER = /^(Pulling fs layer|Waiting|Downloading|Verifying|Download complete|Extracting)/;
const DONE = /^(Pull complete|Already exists)/;
const FETCHED = /^(Verifying|Download complete|Extracting)/;

interface Layer {
  readonly current: number;
  readonly total: number;
  readonly done: boolean;
}

const NOTHING: Layer = { current: 0, total: 0, done: false };

function after({ status = '', progressDetail }: PullStep, layer: Layer): Layer {
  if (DONE.test(status)) return { ...layer, current: layer.total, done: true };
  // Progress while unpacking counts other bytes.
  if (FETCHED.test(status)) return { ...layer, current: layer.total };
  const { current = layer.current, total = layer.total } = progressDetail ?? {};
  return { current, total, done: false };
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((all, one) => all + one, 0);
}

/** Progress of all layers together: bytes as they come over the network. */
export class PullProgress {
  readonly #layers = new Map<string, Layer>();

  note(step: PullStep): void {
    const { id, status = '' } = step;
    if (id === undefined || !(OF_LAYER.test(status) || DONE.test(status))) return;
    const layer = this.#layers.get(id);
    if (layer === undefined && this.#layers.size >= MOST_LAYERS) return;
    this.#layers.set(id, after(step, layer ?? NOTHING));
  }

  get bytes(): Amount {
    const all = [...this.#layers.values()];
    return { done: sum(all.map(({ current }) => current)), total: sum(all.map(({ total }) => total)) };
  }

  get layers(): Amount {
    const done = [...this.#layers.values()].filter((layer) => layer.done).length;
    return { done, total: this.#layers.size };
  }
}
