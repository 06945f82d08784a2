/** Bounds on the work that one YAML text may cause. */
export interface YamlLimits {
  readonly bytes: number;
  /** Lexical tokens: the cost of parsing grows with these, not with bytes alone. */
  readonly tokens: number;
  /** Levels of lists and maps, also through aliases. */
  readonly depth: number;
  /** Values after every alias and merge key is expanded. */
  readonly values: number;
  /** Characters of all keys and texts after every alias and merge key is expanded. */
  readonly characters: number;
  /** The time that reading may take. It is looked at while the text is parsed and again while it is expanded. */
  readonly milliseconds: number;
}

/** A document that a request brings: a page with one long text in it. */
export const PAGE: YamlLimits = {
  bytes: 256 * 1024,
  tokens: 10_000,
  depth: 32,
  values: 10_000,
  characters: 512 * 1024,
  milliseconds: 1_000,
};

/** A configuration file, a file that this server wrote itself, and the outer bound of a compose file. */
export const FILE: YamlLimits = {
  bytes: 1_048_576,
  tokens: 100_000,
  depth: 32,
  values: 100_000,
  characters: 4 * 1_048_576,
  milliseconds: 5_000,
};

/** The limits of all compose files of one stack together: some 5,000 lines, read in one go beside other requests. */
export const STACK: YamlLimits = { ...FILE, tokens: 30_000, values: 30_000, milliseconds: 2_000 };
