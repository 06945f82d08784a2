import { hintAt } from '../../src/catalogue/profiles/profile-schema.ts';
import { Profile } from '../../src/contract/profiles/profile.ts';
import { formatDuration } from '../../src/contract/values/duration.ts';
import type { Generator } from './generator.ts';
import { page, table } from './generator.ts';
import type { JsonSchema } from './profile-schema.ts';
import { profileJsonSchema } from './profile-schema.ts';

const root = profileJsonSchema();
const requirements = new Set(Object.keys(root.$defs?.Requirements?.properties ?? {}));
const defaults: unknown = Profile.parse({ id: 'profile.x', version: '1.0.0' });

export const profilePage: Generator = {
  file: 'docs/reference/profile.md',
  render: () =>
    page(
      'src/contract/profiles/profile.ts',
      '# Profile',
      'A named, versioned recipe for a sandbox. Profiles are YAML files in a catalogue folder (`profiles/<name>/<version>.yaml`) or documents pushed over the API; both follow one schema, [profile.schema.json](profile.schema.json). Point your editor at it with a first line:',
      '```yaml\n# yaml-language-server: $schema=https://…/profile.schema.json\n```',
      '## Fields',
      table(['Field', 'Value', 'Default', 'Meaning'], rowsOf(root, [])),
      '## Overrides',
      'A file with `kind: override` changes a profile without copying it. It names the profile by `id`, perhaps one `version`, and holds only the fields that change. Maps merge, lists and scalars replace, and `null` takes a field back to its default. The highest `priority` has the last word; without one, that of the folder counts, and later folders come after earlier ones.',
      '```yaml\nkind: override\nid: profile.agent-dev\npriority: 10\nnetwork:\n  egress:\n    - { host: packages.example.org }\n```',
      'An override that does not fit makes its profile unavailable, so that a restriction is never lost silently.',
      '## What a request may change',
      'A request may always ask for less than the profile gives: a shorter `ttl`, lower limits, a narrower network, route or workspace access, stricter isolation. Something else or more is refused, unless `overridable` lists it; a wider network also needs an `adm` key.',
    ),
};

function rowsOf(schema: JsonSchema, path: readonly string[]): string[][] {
  const { properties = {}, required = [] } = resolved(schema);
  return Object.entries(properties).flatMap(([name, field]) => {
    const at = [...path, name];
    const isRepeated = path.at(-1) === 'constraints' && requirements.has(name);
    if (isRepeated) return [];
    const meaning = [field.description, resolved(field).description].find(Boolean);
    const hint = hintAt(at.flatMap((step) => (step.endsWith('[]') ? [step.slice(0, -2), 0] : [step])));
    const row = [
      `\`${at.join('.')}\``,
      kindOf(field),
      required.includes(name) ? requiredAt(at) : defaultAt(at, field),
      [meaning, hint].filter(Boolean).join(' '),
    ];
    const { items } = resolved(field);
    return [row, ...(items ? rowsOf(items, [...path, `${name}[]`]) : rowsOf(field, at))];
  });
}

function resolved(schema: JsonSchema): JsonSchema {
  const name = schema.$ref?.split('/').at(-1);
  return name ? (root.$defs?.[name] ?? schema) : schema;
}

function kindOf(schema: JsonSchema): string {
  const { anyOf, enum: values, type, items, additionalProperties } = resolved(schema);
  if (anyOf) return [...new Set(anyOf.flatMap((option) => kindOf(option).split(' or ')))].join(' or ');
  if (values) return values.map((value) => `\`${value}\``).join(', ');
  if (items) return `list of ${resolved(items).properties ? 'maps' : kindOf(items)}`;
  if (type === 'object') return typeof additionalProperties === 'object' ? 'map of text' : 'map';
  if (type === 'string') return 'text';
  return type ?? 'any';
}

/** A field can be required within a map that can be left out as a whole. */
function requiredAt(path: readonly string[]): string {
  const whole = defaultAt(path, {});
  return whole && path.length > 1
    ? `*required*; ${whole} without \`${path.slice(0, -1).join('.')}\``
    : '*required*';
}

function defaultAt(path: readonly string[], schema: JsonSchema): string {
  const value = path.reduce<unknown>(
    (at, step) => (at as Record<string, unknown> | undefined)?.[step],
    path.some((step) => step.endsWith('[]')) ? undefined : defaults,
  );
  const shown = value ?? schema.default ?? value;
  if (shown === undefined || (typeof shown === 'object' && shown !== null && !Array.isArray(shown)))
    return '';
  if (typeof shown === 'number' && path[0] === 'ttl') return `\`${formatDuration(shown)}\``;
  return `\`${typeof shown === 'string' && shown !== '' ? shown : JSON.stringify(shown)}\``;
}
