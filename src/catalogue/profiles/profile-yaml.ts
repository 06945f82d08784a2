import type { ProfileIssue } from '../../contract/profiles/profile.ts';
import type { FieldPath, YamlPosition } from '../../yaml/read-yaml.ts';
import { isFaulty, readYaml } from '../../yaml/read-yaml.ts';
import { PAGE } from '../../yaml/yaml-limits.ts';

export type { FieldPath } from '../../yaml/read-yaml.ts';

/** A profile is a page, not a book. */
export const LARGEST_DOCUMENT_BYTES = PAGE.bytes;

export interface SourcePosition extends YamlPosition {
  /** The file of the field, where one profile is made of several files. */
  readonly file?: string;
}

export interface ProfileYaml {
  readonly value: unknown;
  /** Returns the position of a field, or of its nearest parent if the field is missing. */
  locate(path: FieldPath): SourcePosition;
}

export const NOWHERE: SourcePosition = { line: null, column: null };

/** Reads YAML that JSON can express, with comments and without merge keys. Faults are issues of the file. */
export function readProfileYaml(text: string, file: string): ProfileYaml | ProfileIssue[] {
  const read = readYaml(text, { limits: PAGE });
  if (!isFaulty(read)) return read;
  return read.map(({ message, remedy, line, column }) => ({
    file,
    line,
    column,
    field: '',
    problem: `This is not YAML that a profile may use: ${message}.`,
    remedy,
  }));
}
