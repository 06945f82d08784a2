import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { ExecRequest } from '../../contract/sandboxes/exec.ts';
import { CreateSandboxRequest } from '../../contract/sandboxes/sandbox.ts';
import { boundedList, boundedRecord } from '../../contract/values/bounded.ts';
import { EnvVars, Labels } from '../../contract/values/json.ts';
import { ROUTE_TABLE } from '../server/route-table.ts';
import { DEFAULT_HTTP_LIMITS } from '../services/http-options.ts';

interface Node {
  readonly _zod: {
    readonly def: {
      readonly type: string;
      readonly most?: number;
      readonly shape?: Readonly<Record<string, Node>>;
      readonly element?: Node;
      readonly valueType?: Node;
      readonly innerType?: Node;
      readonly in?: Node;
      readonly out?: Node;
      readonly options?: readonly Node[];
    };
  };
}

/** Returns every list and map below a schema that is read before its entries were counted. */
function unjudged(node: Node, path: string, seen = new Set<Node>()): string[] {
  const {
    type,
    most,
    shape = {},
    element,
    valueType,
    innerType,
    in: first,
    out,
    options = [],
  } = node._zod.def;
  if (seen.has(node)) return [];
  seen.add(node);
  const below = (next: Node | undefined, name = '') => (next ? unjudged(next, `${path}${name}`, seen) : []);
  return [
    ...((type === 'array' || type === 'record') && most === undefined ? [path] : []),
    ...Object.entries(shape).flatMap(([name, next]) => below(next, `.${name}`)),
    ...below(element, '[]'),
    ...below(valueType, '{}'),
    ...[innerType, first, out, ...options].flatMap((next) => below(next)),
  ];
}

const bodies = ROUTE_TABLE.flatMap(({ operationId, body }) =>
  body?.kind === 'json' ? [{ operationId, body }] : [],
);

describe('JSON bodies', () => {
  it('every list and map of every request body has its entries counted before they are looked at', () => {
    expect(bodies.length).toBeGreaterThan(20);
    const found = bodies.flatMap(({ operationId, body }) => unjudged(body.schema as never, operationId));
    expect(found).toEqual([]);
  });

  it('the walk finds a list and a map that nothing bounds', () => {
    const schema = z.object({ a: z.array(z.string()).optional(), b: z.record(z.string(), z.string()) });
    expect(unjudged(schema as never, 'x')).toEqual(['x.a', 'x.b']);
  });

  it('JSON bodies above 256 KiB are taken only by routes that need them', () => {
    const large = bodies.filter(({ body }) => DEFAULT_HTTP_LIMITS[body.limit] > 256 * 1024);
    expect(large.map(({ operationId }) => operationId).sort()).toEqual([
      'createSandbox',
      'execInSandbox',
      'quoteSandbox',
      'reconcileCredits',
      'resolveRoute',
      'validateRegistryFile',
    ]);
  });
});

describe('bounded lists and maps', () => {
  /** Values that were looked at, and issues that were made. */
  function work(make: (item: z.ZodType) => z.ZodType, value: unknown) {
    let looked = 0;
    const item = z.any().refine(() => {
      looked += 1;
      return false;
    }, 'wrong');
    const result = make(item).safeParse(value);
    return { looked, issues: result.error?.issues.length ?? 0 };
  }
  const map = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, at) => [`a${at}`, 0]));
  const list = (count: number) => Array.from({ length: count }, () => 0);
  const asMap = (item: z.ZodType) => boundedRecord(z.record(z.string(), item), 1_000, 'too many');
  const asList = (item: z.ZodType) => boundedList(z.array(item).max(1_000), 1_000);

  it('boundedRecord: of too many entries none is looked at', () => {
    expect(work(asMap, map(100_000))).toEqual({ looked: 0, issues: 1 });
  });

  it('boundedList: of too many items none is looked at', () => {
    expect(work(asList, list(100_000))).toEqual({ looked: 0, issues: 1 });
  });

  it('boundedRecord and boundedList: the first of many wrong entries is the only issue', () => {
    expect(work(asMap, map(1_000))).toEqual({ looked: 1, issues: 1 });
    expect(work(asList, list(1_000))).toEqual({ looked: 1, issues: 1 });
  });

  it('boundedRecord and boundedList: few wrong entries are all reported', () => {
    expect(work(asMap, map(3)).issues).toBe(3);
    expect(work(asList, list(3)).issues).toBe(3);
  });

  it('an env of 100,000 entries is refused with one issue, by exec and by create', () => {
    const env = map(100_000);
    for (const schema of [EnvVars, Labels]) expect(schema.safeParse(env).error?.issues).toHaveLength(1);
    for (const field of ['env', 'labels', 'inputs']) {
      const { error } = CreateSandboxRequest.safeParse({ [field]: env });
      expect(error?.issues.map(({ path }) => path)).toEqual([[field]]);
    }
    const exec = ExecRequest.safeParse({ command: ['true'], env });
    expect(exec.error?.issues).toMatchObject([{ path: ['env'], message: 'At most 1024 variables.' }]);
  });

  it('a valid map of many entries is taken as it is', () => {
    const env = Object.fromEntries(Array.from({ length: 1_024 }, (_, at) => [`A${at}`, 'x']));
    expect(EnvVars.parse(env)).toEqual(env);
    const command = Array.from({ length: 32_768 }, () => 'x');
    expect(ExecRequest.parse({ command }).command).toEqual(command);
  });
});
