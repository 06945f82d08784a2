/**
 * Shapes of the parts of a compose file. A shape reads a value and returns a new one that is built from the understood parts; no
 * part of the input is ever returned. Each shape has examples of what it accepts, so that tests can enumerate every field of the
 * model.
 */
import { isTree } from '../yaml/compose-yaml.ts';
import { isTruthy, listOf, textOf } from '../yaml/scalars.ts';
import type { Reading } from './reading.ts';

export interface Shape<T> {
  /** Returns `undefined` when the value is not emitted; a finding or a note then gives the reason. */
  read(value: unknown, at: Reading): T | undefined;
  readonly examples: readonly unknown[];
}

export type ReadBy<S> = S extends Shape<infer T> ? T : never;

const REMEDY = 'See the guide "Compose stacks" for what this field may hold.';
const MOST_ITEMS = 4096;

function shown(value: unknown): string {
  return (JSON.stringify(value) ?? 'nothing').slice(0, 80);
}

export interface TextRule {
  /** Completes the message "this is not …": `a name of a network`. */
  readonly what: string;
  readonly pattern: RegExp;
  readonly examples: readonly string[];
  readonly remedy?: string;
}

/** Returns a shape of texts that match a pattern as a whole; the pattern bounds their length. */
export function text({ what, pattern, examples, remedy = REMEDY }: TextRule): Shape<string> {
  return {
    read(value, at) {
      const given = textOf(value);
      if (given !== null && pattern.test(given)) return given;
      return at.invalid(`${shown(value)} is not ${what}.`, remedy);
    },
    examples,
  };
}

export function choice<const W extends string>(...words: readonly W[]): Shape<W> {
  return {
    read(value, at) {
      const found = words.find((word) => word === textOf(value));
      if (found !== undefined) return found;
      return at.invalid(`${shown(value)} is not understood.`, `Write one of ${words.join(', ')}.`);
    },
    examples: words.slice(0, 1),
  };
}

/** Shape of flags: every value that a YAML reader could take for true or false. */
export const flag: Shape<boolean> = {
  read(value, at) {
    if (isTruthy(value) && !/^(?:true|yes|on|y|t|1)$/i.test(textOf(value)?.trim() ?? ''))
      return at.invalid(`${shown(value)} is neither true nor false.`, 'Write true or false.');
    return isTruthy(value);
  },
  examples: [true],
};

/** Returns a shape of numbers that `parse` understands, at least `least` and at most `most`. */
export function numberIn(
  parse: (value: unknown) => number | null,
  least: number,
  most: number,
  example: unknown,
): Shape<number> {
  return {
    read(value, at) {
      const number = parse(value);
      if (number !== null && number >= least && number <= most) return number;
      return at.invalid(
        `${shown(value)} is not a number from ${least} to ${most}.`,
        `Write one, as in ${shown(example)}.`,
      );
    },
    examples: [example],
  };
}

/** Returns a shape of one item or a list of items. */
export function list<T>(item: Shape<T>): Shape<T[]> {
  return {
    read(value, at) {
      const items = listOf(value);
      if (items.length > MOST_ITEMS) return at.invalid(`It has ${items.length} items.`, 'Write fewer.');
      return items.map((one) => item.read(one, at)).filter((one) => one !== undefined);
    },
    examples: item.examples.map((example) => [example]),
  };
}

/** Returns a shape of a mapping of names to values; a name without a value (`null`) is left out. */
export function map<T>(name: TextRule, item: Shape<T>): Shape<{ [name: string]: T }> {
  return {
    read(value, at) {
      if (!isTree(value)) return at.invalid('It is not a mapping.', REMEDY);
      const entries = Object.entries(value);
      if (entries.length > MOST_ITEMS) return at.invalid(`It has ${entries.length} entries.`, 'Write fewer.');
      const result: { [name: string]: T } = {};
      for (const [key, one] of entries) {
        const below = at.below(key);
        if (!name.pattern.test(key))
          below.invalid(`${shown(key)} is not ${name.what}.`, name.remedy ?? REMEDY);
        else if (one !== null && one !== undefined) {
          const read = item.read(one, below);
          if (read !== undefined) result[key] = read;
        }
      }
      return result;
    },
    examples: name.examples.flatMap((key) => item.examples.map((example) => ({ [key]: example }))),
  };
}

type Fields = { readonly [field: string]: Shape<unknown> };
export type RecordOf<F extends Fields> = { -readonly [K in keyof F]?: ReadBy<F[K]> };

/** Returns a shape of a mapping with these fields and no others; `x-…` is left out. */
export function record<F extends Fields>(fields: F): Shape<RecordOf<F>> {
  return {
    read(value, at) {
      if (!isTree(value)) return at.invalid('It is not a mapping.', REMEDY);
      const result: { [field: string]: unknown } = {};
      for (const [key, one] of Object.entries(value)) {
        if (key.startsWith('x-') || one === null || one === undefined) continue;
        const field = Object.hasOwn(fields, key) ? fields[key] : undefined;
        if (field === undefined)
          at.below(key).invalid('It is not understood, so it cannot be judged.', 'Remove it.');
        else {
          const read = field.read(one, at.below(key));
          if (read !== undefined) result[key] = read;
        }
      }
      return result as RecordOf<F>;
    },
    examples: Object.entries(fields).flatMap(([key, { examples }]) =>
      examples.map((example) => ({ [key]: example })),
    ),
  };
}

/** Returns the shape `yes` for values for which `test` holds, else the other. */
export function either<A, B>(test: (value: unknown) => boolean, yes: Shape<A>, no: Shape<B>): Shape<A | B> {
  return {
    read: (value, at): A | B | undefined => (test(value) ? yes.read(value, at) : no.read(value, at)),
    examples: [...yes.examples, ...no.examples],
  };
}

/** Returns a shape of a field without a meaning here: its value is left out, with a note. */
export function ignored(...examples: readonly unknown[]): Shape<never> {
  return { read: (_value, at) => at.leaveOut(), examples };
}

/** Returns a shape of a field that need not be emitted, and whose loss needs no note. */
export function silent(...examples: readonly unknown[]): Shape<never> {
  return { read: () => undefined, examples };
}

/** Returns a shape whose values reach out of the sandbox unless `harmless` holds for them. */
export function boundary<T>(
  shape: Shape<T>,
  detail: string | ((value: T) => string),
  options: { readonly harmless?: (value: T) => boolean; readonly remedy?: string } = {},
): Shape<T> {
  return {
    read(value, at) {
      const read = shape.read(value, at);
      if (read === undefined || options.harmless?.(read)) return read;
      at.boundary(typeof detail === 'string' ? detail : detail(read), options.remedy);
      return read;
    },
    examples: shape.examples,
  };
}

/** Returns a shape that is refused whatever the value, elevated or not. */
export function never(detail: string, remedy = 'Remove it.'): Shape<never> {
  return { read: (_value, at) => at.invalid(detail, remedy), examples: ['x'] };
}
