/** A seeded stream of numbers (sfc32). Each concern of a run has its own, so that one does not disturb the others. */
export class Prng {
  #a: number;
  #b: number;
  #c: number;
  #counter = 1;

  constructor(seed: number, stream: string) {
    this.#a = seed | 0;
    this.#b = hashText(stream);
    this.#c = 0x9e3779b9 ^ (seed * 0x85ebca6b);
    for (let i = 0; i < 12; i += 1) this.uint32();
  }

  uint32(): number {
    const t = (this.#a + this.#b + this.#counter) | 0;
    this.#counter = (this.#counter + 1) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = (((this.#c << 21) | (this.#c >>> 11)) + t) | 0;
    return t >>> 0;
  }

  /** In [0, 1). */
  float(): number {
    return this.uint32() / 4_294_967_296;
  }

  /** A whole number from `from` to `to`, both included. */
  between(from: number, to: number): number {
    return from + Math.floor(this.float() * (to - from + 1));
  }

  chance(probability: number): boolean {
    return this.float() < probability;
  }

  pick<T>(items: readonly T[]): T {
    return items[Math.floor(this.float() * items.length)] as T;
  }

  pickOrNull<T>(items: readonly T[]): T | null {
    return items.length === 0 ? null : this.pick(items);
  }

  weighted<T>(items: readonly (readonly [T, number])[]): T {
    let left = this.float() * items.reduce((sum, [, weight]) => sum + weight, 0);
    for (const [item, weight] of items) {
      left -= weight;
      if (left < 0) return item;
    }
    return (items.at(-1) as readonly [T, number])[0];
  }
}

export function hashText(text: string, from = 0x811c9dc5): number {
  let hash = from;
  for (let i = 0; i < text.length; i += 1) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return hash | 0;
}
