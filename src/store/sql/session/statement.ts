import type { Compilable, CompiledQuery } from 'kysely';

class Placeholder {
  readonly name: string;

  constructor(name: string) {
    this.name = name;
  }
}

const PLACEHOLDERS: object = new Proxy({}, { get: (_, name) => new Placeholder(String(name)) });

/**
 * A query that is built and compiled once and run with other values each time: building costs more than running.
 * `Args` are its named values.
 */
export class Statement<Args extends object, Row> {
  readonly sql: string;
  /** The row type of the answer; exists for the type checker only. */
  declare readonly row?: Row;
  /** A placeholder's name, or a value that is the same each time. */
  readonly #slots: readonly { readonly name: string | null; readonly value: unknown }[];

  constructor({ sql, parameters }: CompiledQuery<Row>) {
    this.sql = sql;
    this.#slots = parameters.map((value) =>
      value instanceof Placeholder ? { name: value.name, value: null } : { name: null, value },
    );
  }

  parameters(args: Args): readonly unknown[] {
    const values = args as Readonly<Record<string, unknown>>;
    return this.#slots.map(({ name, value }) => (name === null ? value : values[name]));
  }
}

/** `build` gets stand-ins for the values, which it may pass to the query builder and do nothing else with. */
export function prepare<Args extends object, Row = never>(
  build: (args: Args) => Compilable<Row>,
): Statement<Args, Row> {
  return new Statement(build(PLACEHOLDERS as Args).compile());
}
