import type { Tree } from '../yaml/compose-yaml.ts';
import { isTree } from '../yaml/compose-yaml.ts';
import { invalidStack } from '../yaml/finding.ts';

/** Variables that a compose file may name, and the named ones that have no value. */
export class Variables {
  /** Earlier layers win. Maps are shared, not copied: one may still grow. */
  readonly #layers: readonly ReadonlyMap<string, string>[];
  readonly unset = new Set<string>();
  #written = 0;

  constructor(...layers: readonly ReadonlyMap<string, string>[]) {
    this.#layers = layers;
  }

  get(name: string): string | undefined {
    for (const layer of this.#layers) {
      const value = layer.get(name);
      if (value !== undefined) return value;
    }
    return undefined;
  }

  /** Returns variables in which `values` win over these. */
  over(values: ReadonlyMap<string, string>): Variables {
    return new Variables(...this.#layers, values);
  }

  entries(): IterableIterator<[string, string]> {
    return new Map(this.#layers.toReversed().flatMap((layer) => [...layer])).entries();
  }

  /** Counts the bytes of inserted values: short references to long values would otherwise multiply. */
  count(text: string): string {
    this.#written += text.length;
    if (this.#written > LARGEST_RESULT) {
      throw invalidStack('', 'Its variables expand to more than 4 MiB.', 'Use shorter values.');
    }
    return text;
  }
}

const LARGEST_RESULT = 4 * 1_048_576;
const DEEPEST = 16;
const NAME = /^[A-Za-z_][A-Za-z0-9_]*/;

/** Returns the end of `${…}`, whose default may contain further variables. */
function closing(text: string, from: number): number {
  let depth = 1;
  for (let at = from; at < text.length; at += 1) {
    if (text.startsWith('${', at)) {
      depth += 1;
      at += 1;
    } else if (text[at] === '}') {
      depth -= 1;
      if (depth === 0) return at;
    }
  }
  return -1;
}

function bad(text: string, field: string) {
  return invalidStack(
    field,
    `The variable in ${JSON.stringify(text.slice(0, 80))} is not closed or has no name.`,
    'Write $NAME, or $$ for a dollar sign.',
  );
}

interface Substitution {
  readonly whole: string;
  readonly variables: Variables;
  readonly field: string;
  readonly depth: number;
}

function substituted(inner: string, { whole, variables, field, depth }: Substitution): string {
  const [name] = NAME.exec(inner) ?? [];
  if (name === undefined) throw bad(whole, field);
  const rest = inner.slice(name.length);
  const value = variables.get(name);
  if (rest === '') {
    if (value === undefined) variables.unset.add(name);
    return value ?? '';
  }
  const [, operator = '', argument = ''] = /^(:?[-?+])([\s\S]*)$/.exec(rest) ?? [];
  const isSet = value !== undefined && (value !== '' || !operator.startsWith(':'));
  const other = () => interpolateText(argument, variables, field, depth + 1);
  if (operator.endsWith('-')) return isSet ? value : other();
  if (operator.endsWith('+')) return isSet ? other() : '';
  if (operator.endsWith('?')) {
    if (isSet) return value;
    throw invalidStack(
      field,
      `The variable ${name} has no value${argument === '' ? '' : `: ${other()}`}.`,
      `Give it in the input "env", or in .env.`,
    );
  }
  throw bad(whole, field);
}

/** Replaces `$NAME`, `${NAME}`, `${NAME:-default}`, `${NAME-default}`, `:?`, `?`, `:+`, `+`, and `$$` by one dollar sign. */
export function interpolateText(text: string, variables: Variables, field: string, depth = 0): string {
  if (!text.includes('$')) return text;
  if (depth > DEEPEST) throw invalidStack(field, 'Its variables are nested too deep.', 'Use plain defaults.');
  let result = '';
  for (let at = 0; at < text.length; ) {
    if (text[at] !== '$') {
      const next = text.indexOf('$', at);
      result += text.slice(at, next === -1 ? text.length : next);
      at = next === -1 ? text.length : next;
    } else if (text[at + 1] === '$') {
      result += '$';
      at += 2;
    } else if (text[at + 1] === '{') {
      const end = closing(text, at + 2);
      if (end === -1) throw bad(text, field);
      result += substituted(text.slice(at + 2, end), { whole: text, variables, field, depth });
      at = end + 1;
    } else {
      const [name] = NAME.exec(text.slice(at + 1)) ?? [];
      if (name === undefined) throw bad(text, field);
      result += substituted(name, { whole: text, variables, field, depth });
      at += 1 + name.length;
    }
  }
  return variables.count(result);
}

/** Interpolates every text of a value, but no key: as compose does. */
export function interpolateTree(value: Tree, variables: Variables): Tree {
  const walk = (at: unknown, path: string): unknown => {
    if (typeof at === 'string') return interpolateText(at, variables, path);
    if (Array.isArray(at)) return at.map((item, n) => walk(item, `${path}[${n}]`));
    if (isTree(at))
      return Object.fromEntries(
        Object.entries(at).map(([key, item]) => [key, walk(item, path === '' ? key : `${path}.${key}`)]),
      );
    return at;
  };
  return walk(value, '') as Tree;
}
