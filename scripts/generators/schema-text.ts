/** Describes JSON Schema in words, for the pages made from it. */

export interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly default?: unknown;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly allOf?: readonly Schema[];
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: Schema | boolean;
  readonly pattern?: string;
  readonly format?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
}

/** Returns whether a schema is a duration: every duration has the same pattern, whatever its name. */
export function isDuration(schema: Schema): boolean {
  return (schema.anyOf ?? []).some((option) => option.pattern?.includes('[smhdw]') || isDuration(option));
}

function isSize(schema: Schema): boolean {
  return (schema.anyOf ?? []).some((option) => option.pattern?.includes('GiB') || isSize(option));
}

export function nameOf(schema: Schema): string | null {
  return schema.$ref?.split('/').at(-1) ?? null;
}

function allowsNull(schema: Schema): boolean {
  if (schema.type === 'null' || (Array.isArray(schema.type) && schema.type.includes('null'))) return true;
  return (schema.anyOf ?? schema.oneOf ?? []).some(allowsNull);
}

/** Returns the kind of value, with names of other schemas written by `link`. */
export function kindOf(schema: Schema, link: (name: string) => string): string {
  const name = nameOf(schema);
  if (name !== null) return link(name);
  const orNull = allowsNull(schema) ? ' or `null`' : '';
  if (isDuration(schema)) return `duration${orNull}`;
  if (isSize(schema)) return `size${orNull}`;
  if (schema.const !== undefined) return `\`${String(schema.const)}\``;
  if (schema.enum) return schema.enum.map((value) => `\`${String(value)}\``).join(', ');
  const options = schema.anyOf ?? schema.oneOf;
  if (options) {
    const kinds = options.filter((option) => option.type !== 'null').map((option) => kindOf(option, link));
    return [...new Set(kinds)].join(' or ') + orNull;
  }
  if (schema.allOf) return schema.allOf.map((part) => kindOf(part, link)).join(' and ');
  if (schema.items) return `list of ${kindOf(schema.items, link)}${orNull}`;
  const types = [schema.type ?? []].flat().filter((type) => type !== 'null');
  return (types.map((type) => plainKind(type, schema, link)).join(' or ') || 'any') + orNull;
}

function plainKind(type: string, schema: Schema, link: (name: string) => string): string {
  if (type === 'string') return 'text';
  if (type === 'integer') return rangeOf('integer', schema);
  if (type !== 'object') return type;
  const { additionalProperties: values } = schema;
  if (schema.properties || typeof values !== 'object') return 'map';
  const kind = kindOf(values, link);
  return kind === 'any' ? 'map' : `map of ${kind}`;
}

const SMALLEST_WORTH_SAYING = 1_000_001;

/** Limits that are only those of the number type are left out. */
function rangeOf(kind: string, { minimum, maximum }: Schema): string {
  if (minimum === undefined || maximum === undefined || maximum >= SMALLEST_WORTH_SAYING) return kind;
  return `${kind}, ${minimum} to ${maximum}`;
}

export interface Field {
  readonly path: string;
  readonly schema: Schema;
  readonly required: boolean;
}

/** Returns the fields of a schema and of the nameless ones within it. */
export function fieldsOf(schema: Schema, path = ''): Field[] {
  const required = new Set(schema.required ?? []);
  return Object.entries(schema.properties ?? {}).flatMap(([name, field]) => {
    const at = path === '' ? name : `${path}.${name}`;
    const inner = [field, ...(field.anyOf ?? [])].find((option) => option.properties) ?? field;
    const item = field.items?.properties ? field.items : null;
    return [
      { path: at, schema: field, required: required.has(name) },
      ...(item ? fieldsOf(item, `${at}[]`) : fieldsOf(inner, at)),
    ];
  });
}

/** Returns the default as written in YAML or JSON; empty when there is none worth showing. */
export function defaultText(value: unknown): string {
  if (value === undefined) return '';
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return '';
  return `\`${typeof value === 'string' && value !== '' ? value : JSON.stringify(value)}\``;
}
