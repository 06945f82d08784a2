import { z } from 'zod';
import { fieldName } from '../../catalogue/profiles/profile-issues.ts';
import { SandboxerError } from '../../contract/errors/errors.ts';
import { nearestNames } from '../../core/recipe/nearest-names.ts';

type Issue = z.core.$ZodIssue;
interface Described {
  readonly properties?: Readonly<Record<string, Described>>;
  readonly additionalProperties?: Described;
  readonly anyOf?: readonly Described[];
}

/** Returns the names that a schema knows below a path. */
function namesAt(schema: z.ZodType, path: readonly PropertyKey[]): string[] {
  let at: Described | undefined = z.toJSONSchema(schema, {
    io: 'input',
    unrepresentable: 'any',
  }) as Described;
  for (const step of path) {
    const inside: Described | undefined = at?.anyOf?.find(({ properties }) => properties) ?? at;
    at = inside?.properties?.[String(step)] ?? inside?.additionalProperties;
  }
  const here: Described | undefined = at?.anyOf?.find(({ properties }) => properties) ?? at;
  return Object.keys(here?.properties ?? {});
}

function unknownName(schema: z.ZodType, issue: Issue & { readonly keys: readonly string[] }) {
  const [key = ''] = issue.keys;
  const names = namesAt(schema, issue.path);
  const [near] = nearestNames(key, names, 1);
  const remedy = near ? `Did you mean "${near}"?` : `The settings here are: ${names.join(', ')}.`;
  return { path: [...issue.path, key], problem: 'there is no such setting', remedy };
}

/** Returns the first fault of a configuration, by the name of its field. */
export function configProblem(
  schema: z.ZodType,
  issues: readonly Issue[],
  file: string | undefined,
): SandboxerError {
  const issue = issues[0] as Issue;
  const { path, problem, remedy } =
    issue.code === 'unrecognized_keys'
      ? unknownName(schema, issue)
      : { path: issue.path, problem: issue.message, remedy: undefined };
  const field = fieldName(path.map((step) => (typeof step === 'number' ? step : String(step))));
  const where = file === undefined ? 'The configuration' : `The configuration file ${file}`;
  return new SandboxerError('SBX_CONFIG_INVALID', `${where}: ${field || 'the document'}: ${problem}`, {
    field,
    ...(remedy === undefined ? {} : { remedy }),
  });
}
