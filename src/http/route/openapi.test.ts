import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, test } from 'vitest';
import { ERRORS } from '../../contract/errors/errors.ts';
import { ROUTE_TABLE } from '../server/route-table.ts';
import { openApiDocument } from './openapi.ts';

interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly required: boolean;
  readonly schema: object;
}
interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly tags: readonly string[];
  readonly parameters?: readonly Parameter[];
  readonly responses: Readonly<Record<string, unknown>>;
}
interface Document {
  readonly openapi: string;
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, object>> };
}

const document = JSON.parse(JSON.stringify(openApiDocument(ROUTE_TABLE, '1.2.3'))) as Document;
const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
);

function references(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, child]) =>
    key === '$ref' && typeof child === 'string' ? [child] : references(child),
  );
}

function resolve(reference: string): unknown {
  return reference
    .slice(2)
    .split('/')
    .reduce<unknown>((at, step) => (at as Record<string, unknown> | undefined)?.[step], document);
}

describe('the document', () => {
  test('the OpenAPI document has every route, and no other', () => {
    const documented = operations.map(({ path, method }) => `${method.toUpperCase()} ${path}`).sort();
    const served = ROUTE_TABLE.map(({ method, url }) => `${method} ${url}`).sort();
    expect(documented).toEqual(served);
    expect(new Set(served).size).toBe(served.length);
  });

  test('every reference leads somewhere', () => {
    const all = references(document);
    expect(all.length).toBeGreaterThan(50);
    for (const reference of all) expect(resolve(reference), reference).toBeDefined();
  });

  test('every path parameter is declared, and no other', () => {
    for (const { path, operation } of operations) {
      const inPath = [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1]).sort();
      const declared = (operation.parameters ?? []).filter((parameter) => parameter.in === 'path');
      expect(declared.map(({ name }) => name).sort(), path).toEqual(inPath);
      expect(declared.every(({ required }) => required)).toBe(true);
    }
  });

  test('operations of the document have names of their own, and a description', () => {
    const ids = operations.map(({ operation }) => operation.operationId);
    expect(new Set(ids).size).toBe(ids.length);
    for (const { operation } of operations) {
      expect(operation.summary.endsWith('.')).toBe(true);
      expect(Object.keys(operation.responses)).toContain('default');
      expect(Object.keys(operation.responses).length).toBeGreaterThan(1);
    }
  });

  test('every schema compiles, and accepts valid and refuses invalid values', { timeout: 30_000 }, () => {
    const ajv = new Ajv2020({ strict: false, validateFormats: false });
    ajv.addSchema(document, 'doc');
    const pointer = (text: string) => text.replaceAll('~', '~0').replaceAll('/', '~1');
    for (const name of Object.keys(document.components.schemas)) {
      expect(ajv.getSchema(`doc#/components/schemas/${pointer(name)}`), name).toBeTypeOf('function');
    }
    for (const { path, method, operation } of operations) {
      for (const [index, { name }] of (operation.parameters ?? []).entries()) {
        const place = `doc#/paths/${encodeURIComponent(pointer(path))}/${method}/parameters/${index}/schema`;
        expect(ajv.getSchema(place), `${path} ${name}`).toBeTypeOf('function');
      }
    }
    const create = ajv.getSchema('doc#/components/schemas/CreateSandboxRequest');
    expect(create?.({ profile: 'profile.agent-dev', ttl: '2h', consumer: { actor: 'agt' } })).toBe(true);
    expect(create?.({ profil: 'x' })).toBe(false);
    expect(create?.({ labels: { a: 1 } })).toBe(false);
  });

  test('the OpenAPI document describes the meaning of queries, not their spelling', () => {
    const list = document.paths['/v1/sandboxes']?.get?.parameters ?? [];
    const limit = list.find(({ name }) => name === 'limit');
    expect(limit?.schema).toMatchObject({ type: 'integer', minimum: 1, maximum: 500 });
    const state = list.find(({ name }) => name === 'state');
    expect(state?.schema).toMatchObject({ type: 'array' });
  });

  test('the OpenAPI document lists every error', () => {
    expect(Object.keys((document as unknown as { 'x-errors': object })['x-errors'])).toEqual(
      Object.keys(ERRORS),
    );
  });
});
