import type { YamlLimits } from '../../../../yaml/yaml-limits.ts';
import { STACK } from '../../../../yaml/yaml-limits.ts';
import type { Tree } from '../yaml/compose-yaml.ts';
import { isTree, LARGEST_FILE_BYTES, readComposeYaml } from '../yaml/compose-yaml.ts';
import { invalidStack } from '../yaml/finding.ts';

const MOST_FILES = 64;
/** Limit of all files together, variables included. */
const MOST_BYTES = 2 * 1_048_576;
/** Limit of the values of all services with extended services and `env_file`: the emitted file stays readable. */
const MOST_VALUES = 15_000;

function valuesIn(value: unknown): number {
  if (Array.isArray(value)) return value.reduce((sum: number, item) => sum + valuesIn(item), 1);
  if (!isTree(value)) return 1;
  return Object.values(value).reduce((sum: number, item) => sum + valuesIn(item), 1);
}

/**
 * Budget for reading one stack, all files and services together. A bound on each file is not enough: a stack may name 64 files,
 * and each of 100 services may extend the same large one.
 */
export class StackBudget {
  #files = 0;
  #bytes = 0;
  #tokens = 0;
  #values = 0;

  /** Counts a file before it is read. */
  open(field: string, service: string | null): void {
    this.#files += 1;
    if (this.#files > MOST_FILES)
      throw invalidStack(
        field,
        `More than ${MOST_FILES} files are needed to read it.`,
        'Use fewer files.',
        service,
      );
  }

  /** Counts the text of a file. */
  read(text: string, name: string, field: string, service: string | null): void {
    const bytes = Buffer.byteLength(text);
    this.#bytes += bytes;
    if (bytes > LARGEST_FILE_BYTES)
      throw invalidStack(field, `${name} is larger than 1 MiB.`, 'Use a smaller file.', service);
    if (this.#bytes > MOST_BYTES)
      throw invalidStack(
        field,
        `The compose files and the files of variables are larger than ${MOST_BYTES / 1_048_576} MiB together.`,
        'Use fewer or smaller files.',
        service,
      );
  }

  /** Parses a compose file, within the lexical tokens that are left. */
  parse(text: string, name: string): Tree {
    const limits: YamlLimits = { ...STACK, tokens: Math.max(0, STACK.tokens - this.#tokens) };
    const { tree, tokens } = readComposeYaml(text, name, limits);
    this.#tokens += tokens;
    return tree;
  }

  /** Counts the values that a service gets from other services and files. */
  take(values: unknown, field: string, service: string): void {
    this.takeCount(valuesIn(values), field, service);
  }

  takeCount(values: number, field: string, service: string): void {
    this.#values += values;
    if (this.#values > MOST_VALUES)
      throw invalidStack(
        field,
        `The services have more than ${MOST_VALUES} values together.`,
        'Extend smaller services, and name smaller files of variables.',
        service,
      );
  }
}
