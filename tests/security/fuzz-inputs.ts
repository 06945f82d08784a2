/** What nobody in their right mind sends, made from the schemas of the API and a seed. */

export type Schema = {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly minimum?: number;
};

/** mulberry32: small, and the same everywhere. */
export function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** Parts of a path, as they stand in a request line. */
export const SEGMENTS = [
  '..',
  '.',
  '%2e%2e',
  '%2e%2e%2f%2e%2e%2fetc%2fpasswd',
  '..%2f',
  '..%5c',
  '%00',
  'a%00b',
  '%zz',
  '%',
  '%ff%fe',
  '%ed%a0%80',
  '%c0%ae%c0%ae',
  '%e2%80%ae',
  '%f0%9f%92%a9',
  '%0d%0ax-evil:1',
  '__proto__',
  'constructor',
  'null',
  'undefined',
  '-1',
  '99999999999999999999',
  '*',
  ';a=b',
  '%20',
  "'%20OR%201=1--",
  '$%7bjndi%7d',
  'a'.repeat(255),
  'a'.repeat(300),
  'a'.repeat(8000),
];

/** Values of a query parameter, encoded. */
export const QUERY_VALUES = [
  '',
  ' ',
  '-1',
  '1.5',
  '1e9',
  '0x10',
  '99999999999999999999',
  'NaN',
  'true',
  '%00',
  'a%00b',
  '%zz',
  '%ff',
  '%ed%a0%80',
  '%e2%80%ae',
  '..%2f..%2fetc',
  '__proto__',
  '%5B%5D',
  '%7B%22a%22:1%7D',
  'a,b,c',
  'x'.repeat(5000),
].map((value) => value.replaceAll(' ', '%20'));

const DEEP = `${'['.repeat(3000)}${']'.repeat(3000)}`;
const DEEP_OBJECT = `${'{"a":'.repeat(300)}1${'}'.repeat(300)}`;

/** JSON texts for a field whose schema is not asked. */
export const HOSTILE_VALUES = [
  'null',
  'true',
  'false',
  '0',
  '-1',
  '1.5',
  '1e308',
  '1e400',
  '9007199254740993',
  '-9007199254740993',
  '""',
  '" "',
  '"\\u0000"',
  '"a\\u0000b"',
  '"\\ud800"',
  '"\\udfff\\ud800"',
  '"\\u202e\\u2066txt"',
  '"../../../../etc/passwd"',
  '"%2e%2e%2f"',
  '"$(reboot)"',
  `"${'x'.repeat(70_000)}"`,
  '[]',
  '[[]]',
  '[null]',
  '{}',
  '{"":""}',
  '{"__proto__":{"polluted":true}}',
  '{"constructor":{"prototype":{"polluted":true}}}',
  '{"toString":1,"hasOwnProperty":1}',
  DEEP,
  DEEP_OBJECT,
];

/** Bodies that are not an object with fields. */
export const HOSTILE_BODIES: readonly (string | Buffer)[] = [
  '',
  ' ',
  '{',
  '}',
  '{"a":1,}',
  "{'a':1}",
  '{"a":NaN}',
  '{"a":undefined}',
  '{"a":1}{"b":2}',
  '// comment\n{}',
  '\ufeff{"profile":"x"}',
  'null',
  '[]',
  '"text"',
  '42',
  'true',
  '{"__proto__":{"polluted":true}}',
  '{"constructor":{"prototype":{"polluted":true}}}',
  '{"\\u005f\\u005fproto\\u005f\\u005f":{"polluted":true}}',
  '{"unknown_field":1}',
  DEEP,
  DEEP_OBJECT,
  `{"${'k'.repeat(100_000)}":1}`,
  Buffer.from([0x7b, 0x22, 0xc3, 0x28, 0x22, 0x3a, 0x31, 0x7d]),
  Buffer.from([0xff, 0xfe, 0x7b, 0x00, 0x7d, 0x00]),
  Buffer.alloc(1000),
];

export const CONTENT_TYPES = [
  'text/plain',
  'application/xml',
  'multipart/form-data; boundary=x',
  'application/x-www-form-urlencoded',
  'application/json; charset=utf-16',
  'application/json;charset',
  ';',
  'application',
  'application/json, text/plain',
  'APPLICATION/JSON ; charset=UTF-8',
];

export const HEADERS: readonly Readonly<Record<string, string>>[] = [
  { 'content-encoding': 'gzip' },
  { 'content-encoding': 'br, gzip' },
  { 'idempotency-key': 'has space' },
  { 'idempotency-key': 'k'.repeat(300) },
  { range: 'bytes=9999999999999999999-' },
  { range: 'bytes=-0' },
  { range: 'bytes=a-b' },
  { 'last-event-id': '-1' },
  { 'last-event-id': '1e3' },
  { accept: 'image/png' },
  { accept: ',,;q=2,*/' },
  { accept: 'text/event-stream;q=0' },
  { 'x-request-id': 'a b\tc' },
  { 'sandboxer-api-version': '0' },
  { 'sandboxer-api-version': '1, 1' },
  { authorization: 'Bearer ' },
  { authorization: 'Bearer sk-00000000000000000000' },
  { authorization: `Bearer ${'x'.repeat(2000)}` },
  { 'accept-version': '9.x' },
  { expect: '100-continue' },
  { upgrade: 'websocket', connection: 'upgrade' },
  { upgrade: 'h2c', connection: 'upgrade, http2-settings' },
];

/** A value that the schema takes, with the help of what is known by name. */
export function sample(
  schema: Schema,
  resolve: (ref: string) => Schema,
  known: ReadonlyMap<string, unknown>,
  name = '',
): unknown {
  if (schema.$ref !== undefined) return sample(resolve(schema.$ref), resolve, known, name);
  if (known.has(name)) return known.get(name);
  if (schema.const !== undefined) return schema.const;
  if (schema.enum) return schema.enum[0];
  const branch = schema.anyOf?.[0] ?? schema.oneOf?.[0];
  if (branch) return sample(branch, resolve, known, name);
  switch (Array.isArray(schema.type) ? schema.type[0] : schema.type) {
    case 'object': {
      const required = schema.required ?? [];
      const entries = required.map((key) => [
        key,
        sample(schema.properties?.[key] ?? {}, resolve, known, key),
      ]);
      return Object.fromEntries(entries);
    }
    case 'array':
      return [sample(schema.items ?? {}, resolve, known, name)];
    case 'integer':
    case 'number':
      return Math.max(1, schema.minimum ?? 1);
    case 'boolean':
      return false;
    case 'null':
      return null;
    default:
      return 'x';
  }
}
