import type { ProfileIssue } from '../../contract/profiles/profile.ts';
import { nearestNames } from '../../core/recipe/nearest-names.ts';
import { hintAt, knownKeysAt } from './profile-schema.ts';
import type { FieldPath, SourcePosition } from './profile-yaml.ts';

/** The fields of a zod issue that are used here. */
export interface SchemaIssue {
  readonly code?: string | undefined;
  readonly path: readonly PropertyKey[];
  readonly message: string;
  readonly keys?: readonly string[];
  readonly values?: readonly unknown[];
  readonly expected?: string;
  readonly issues?: readonly { readonly message: string }[];
}

interface Finding {
  readonly path: FieldPath;
  readonly problem: string;
  readonly remedy: string;
}

interface IssueSource {
  readonly file: string;
  readonly document: unknown;
  locate(path: FieldPath): SourcePosition;
}

/** The most issues of a document: enough to work on. */
const MOST_ISSUES = 20;

/** Makes one issue per field, with its place and a remedy. */
export function profileIssues(issues: readonly SchemaIssue[], source: IssueSource): ProfileIssue[] {
  const byField = new Map<string, ProfileIssue>();
  const findings = issues.slice(0, MOST_ISSUES).flatMap((issue) => findingsOf(issue, source.document));
  for (const finding of findings.slice(0, MOST_ISSUES)) {
    const field = fieldName(finding.path);
    if (byField.has(field)) continue;
    const { problem, remedy } = finding;
    byField.set(field, { file: source.file, ...source.locate(finding.path), field, problem, remedy });
  }
  return [...byField.values()];
}

/** `network.egress[0].host` */
export function fieldName(path: FieldPath): string {
  return path.reduce<string>(
    (name, step) => (typeof step === 'number' ? `${name}[${step}]` : name === '' ? step : `${name}.${step}`),
    '',
  );
}

function findingsOf(issue: SchemaIssue, document: unknown): Finding[] {
  const path = issue.path.map((step) => (typeof step === 'number' ? step : String(step)));
  const value = path.reduce<unknown>(
    (at, step) => (at as Record<string, unknown> | undefined)?.[step],
    document,
  );
  switch (issue.code) {
    case 'unrecognized_keys':
      return (issue.keys ?? []).slice(0, MOST_ISSUES).map((key) => unknownKey(path, key));
    case 'invalid_value':
      return [oneOf(path, value, (issue.values ?? []).map(String))];
    case 'invalid_key':
      return [
        { path, problem: 'The name is not valid.', remedy: issue.issues?.[0]?.message ?? issue.message },
      ];
    case 'invalid_format':
      return [{ path, problem: `${shown(value)} is not valid here.`, remedy: issue.message }];
    case 'invalid_type':
    case 'invalid_union':
      return [wrongKind(path, value, issue.expected)];
    case 'too_small':
    case 'too_big':
      return [{ path, problem: `${issue.message}.`, remedy: 'Choose a value within the limit.' }];
    default:
      return [{ path, problem: issue.message, remedy: 'Change the value so that this holds.' }];
  }
}

function unknownKey(parent: FieldPath, key: string): Finding {
  const known = knownKeysAt(parent);
  const [nearest] = nearestNames(key, known);
  return {
    path: [...parent, key],
    problem: `There is no field "${key}" here.`,
    remedy: nearest ? `Did you mean "${nearest}"?` : `Remove it. The fields here are ${known.join(', ')}.`,
  };
}

function oneOf(path: FieldPath, value: unknown, allowed: readonly string[]): Finding {
  if (value === undefined) {
    return { path, problem: 'The field is missing.', remedy: `Add it: one of ${allowed.join(', ')}.` };
  }
  const [nearest] = typeof value === 'string' ? nearestNames(value, allowed) : [];
  return {
    path,
    problem: `${shown(value)} is not one of the allowed values.`,
    remedy: `${nearest ? `Did you mean "${nearest}"? ` : ''}Use one of ${allowed.join(', ')}.`,
  };
}

function wrongKind(path: FieldPath, value: unknown, expected = 'another kind of value'): Finding {
  const hint = hintAt(path);
  if (value === undefined) {
    return { path, problem: 'The field is missing.', remedy: hint ? `Add it. ${hint}` : 'Add it.' };
  }
  if (expected === 'string' && (typeof value === 'number' || typeof value === 'boolean')) {
    const quoted = `Put the value in quotes: "${value}".`;
    return { path, problem: 'Text is expected here.', remedy: hint ? `${quoted} ${hint}` : quoted };
  }
  const kind = { object: 'a map', record: 'a map', array: 'a list' }[expected] ?? expected;
  return {
    path,
    problem: `${shown(value)} is not valid here.`,
    remedy: hint ?? `Write ${kind}, or remove the field to get its default.`,
  };
}

/** Quotes a value, with no more of it than helps to find it. */
function shown(value: unknown): string {
  if (Array.isArray(value)) return 'A list';
  if (typeof value === 'object' && value !== null) return 'A map';
  if (typeof value === 'string') return value.length > 60 ? 'The text' : JSON.stringify(value);
  return String(value);
}
