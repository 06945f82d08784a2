import type { Node, Pair, YAMLMap } from 'yaml';
import { isAlias, isMap, isScalar, isSeq } from 'yaml';
import { requireTime, tooDeep } from './compose-document.ts';
import { Refusal } from './yaml-fault.ts';
import type { YamlLimits } from './yaml-limits.ts';

/** A value with its cost: what it becomes once every alias in it is written out. */
interface Measured {
  readonly value: unknown;
  readonly values: number;
  readonly characters: number;
  readonly height: number;
}

const MERGE_KEY = '<<';
const VALUES_PER_LOOK = 1024;

/** Turns a syntax tree into plain values. An alias shares the value of its anchor, but counts as often as it is used. */
export class ValueReader {
  readonly #limits: YamlLimits;
  readonly #merge: boolean;
  readonly #endsAt: number;
  /** The anchored values in document order, as an anchor may be given again. `null` while the anchored value is being read. */
  readonly #anchors = new Map<string, Measured | null>();
  #values = 0;
  #characters = 0;
  #looks = 0;

  constructor(limits: YamlLimits, merge: boolean, endsAt: number) {
    this.#limits = limits;
    this.#merge = merge;
    this.#endsAt = endsAt;
  }

  read(node: Node | null, depth = 0): Measured {
    if (depth > this.#limits.depth) throw tooDeep(this.#limits, offsetOfNode(node));
    if (isAlias(node)) return this.#alias(node.source, node, depth);
    const anchor = (node as { anchor?: string } | null)?.anchor;
    if (anchor !== undefined) this.#anchors.set(anchor, null);
    const measured = isMap(node)
      ? this.#map(node, depth)
      : isSeq(node)
        ? this.#list(node.items as (Node | null)[], depth)
        : this.#scalar(node);
    if (anchor !== undefined) this.#anchors.set(anchor, measured);
    return measured;
  }

  #scalar(node: Node | null): Measured {
    const value = isScalar(node) ? node.value : null;
    const characters = typeof value === 'string' ? value.length : 0;
    this.#count(1, characters, node);
    return { value, values: 1, characters, height: 0 };
  }

  #list(items: readonly (Node | null)[], depth: number): Measured {
    const sum = new Sum();
    this.#count(1, 0, null);
    const value = items.map((item) => sum.add(this.read(item, depth + 1)));
    return { value, ...sum.total };
  }

  #map(map: YAMLMap, depth: number): Measured {
    const value: Record<string, unknown> = {};
    const names = new Set<string>();
    const sum = new Sum();
    this.#count(1, 0, map);
    for (const pair of map.items) {
      const name = keyOf(pair);
      if (this.#merge && isMergeKey(pair)) {
        sum.add(this.#mergeInto(value, pair.value as Node | null, depth));
        continue;
      }
      if (names.has(name)) throw twice(name, pair);
      names.add(name);
      this.#count(0, name.length, map);
      sum.characters += name.length;
      put(value, name, sum.add(this.read(pair.value as Node | null, depth + 1)));
    }
    return { value, ...sum.total };
  }

  /** Merges a map into the target. The map's own keys win over merged ones; of two merged maps the first wins. */
  #mergeInto(target: Record<string, unknown>, node: Node | null, depth: number): Measured {
    const merged = this.read(node, depth + 1);
    for (const source of Array.isArray(merged.value) ? merged.value : [merged.value]) {
      if (typeof source !== 'object' || source === null || Array.isArray(source)) {
        const remedy = 'Merge a map, an alias of a map, or a list of these.';
        throw new Refusal('BAD_MERGE', 'Only maps can be merged', remedy, offsetOfNode(node));
      }
      for (const [name, value] of Object.entries(source))
        if (!Object.hasOwn(target, name)) put(target, name, value);
    }
    return merged;
  }

  #alias(name: string, node: Node, depth: number): Measured {
    const target = this.#anchors.get(name);
    const offset = offsetOfNode(node);
    if (target === undefined)
      throw new Refusal('BAD_ALIAS', `There is no anchor &${shown(name)}`, 'Write the value itself.', offset);
    if (target === null)
      throw new Refusal(
        'BAD_ALIAS',
        `The alias *${shown(name)} stands within its own anchor`,
        'Write the value itself.',
        offset,
      );
    if (depth + target.height > this.#limits.depth) throw tooDeep(this.#limits, offset);
    this.#count(target.values, target.characters, node);
    return target;
  }

  #count(values: number, characters: number, node: Node | null): void {
    this.#values += values;
    this.#characters += characters;
    this.#looks += 1;
    if (this.#looks % VALUES_PER_LOOK === 0) requireTime(this.#endsAt);
    if (this.#values <= this.#limits.values && this.#characters <= this.#limits.characters) return;
    throw new Refusal(
      'TOO_LARGE',
      'The document is too large once every alias is expanded',
      'Use fewer values and fewer aliases.',
      offsetOfNode(node),
    );
  }
}

class Sum {
  values = 1;
  characters = 0;
  height = 0;

  add({ value, values, characters, height }: Measured): unknown {
    this.values += values;
    this.characters += characters;
    this.height = Math.max(this.height, height + 1);
    return value;
  }

  get total() {
    return { values: this.values, characters: this.characters, height: this.height };
  }
}

/** The text of a key. A list, a map or an alias as a key is refused before anything turns it into text. */
function keyOf({ key }: Pair): string {
  if (isScalar(key) && key.value !== null && key.value !== undefined) return String(key.value);
  throw new Refusal(
    'BAD_KEY',
    'A key is not plain text',
    'Write the key as text: no list, no map, no alias, not empty.',
    offsetOfNode(key as Node | null),
  );
}

function isMergeKey({ key }: Pair): boolean {
  return isScalar(key) && key.value === MERGE_KEY && (key.type === undefined || key.type === 'PLAIN');
}

/** Assignment to `__proto__` would set the prototype. */
function put(target: Record<string, unknown>, name: string, value: unknown): void {
  if (name === '__proto__')
    Object.defineProperty(target, name, { value, writable: true, enumerable: true, configurable: true });
  else target[name] = value;
}

function twice(name: string, { key }: Pair): Refusal {
  const message = `The key "${shown(name)}" stands twice`;
  return new Refusal('DUPLICATE_KEY', message, 'Keep one of the two.', offsetOfNode(key as Node | null));
}

function shown(name: string): string {
  return name.length > 60 ? `${name.slice(0, 60)}…` : name;
}

export function offsetOfNode(node: Node | null | undefined): number | undefined {
  return node?.range?.[0];
}
