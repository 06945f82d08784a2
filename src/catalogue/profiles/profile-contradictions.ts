import type { Profile } from '../../contract/profiles/profile.ts';
import { profileRequirements } from '../../core/recipe/resolve-recipe.ts';
import type { SchemaIssue } from './profile-issues.ts';

/** Finds faults that the schema cannot see: fields that are each valid and together make no sense. */
export function profileContradictions(profile: Profile): SchemaIssue[] {
  return [...requirementIssues(profile), ...routeIssues(profile), ...secretIssues(profile)];
}

function contradiction(message: string, ...path: (string | number)[]): SchemaIssue {
  return { code: 'contradiction', path, message };
}

function requirementIssues(profile: Profile): SchemaIssue[] {
  try {
    profileRequirements(profile, (field, one, other) => {
      throw contradiction(
        `The profile requires ${field} ${one} and ${other} at once.`,
        'route',
        'constraints',
        field,
      );
    });
    return [];
  } catch (issue) {
    if (issue instanceof Error) throw issue;
    return [issue as SchemaIssue];
  }
}

function routeIssues({ extension, route }: Profile): SchemaIssue[] {
  const named = [...(route.order ?? []), ...(route.only ?? [])];
  const isNameless = route.strategy === 'explicit' && extension === null && named.length === 0;
  return isNameless
    ? [
        contradiction(
          'An explicit route names its backends: set extension or route.order.',
          'route',
          'strategy',
        ),
      ]
    : [];
}

function secretIssues({ setup, network }: Profile): SchemaIssue[] {
  const names = setup.secret_refs.map(({ name }) => name);
  const twice = names.flatMap((name, index) =>
    names.indexOf(name) < index
      ? [contradiction(`The secret ${name} is declared twice.`, 'setup', 'secret_refs', index, 'name')]
      : [],
  );
  const unknown = network.egress.flatMap(({ credential }, index) =>
    credential === undefined || names.includes(credential) || setup.request_secrets === 'any'
      ? []
      : [
          contradiction(
            `There is no secret ${credential}: declare it in setup.secret_refs.`,
            'network',
            'egress',
            index,
            'credential',
          ),
        ],
  );
  return [...twice, ...unknown];
}
