import { readFileSync } from 'node:fs';
import path from 'node:path';
import { openApiDocument } from '../../src/http/route/openapi.ts';
import { ROUTE_TABLE } from '../../src/http/server/route-table.ts';
import type { Generator } from './generator.ts';
import type { Schema } from './schema-text.ts';

export interface Media {
  readonly schema?: Schema;
}
export interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly required: boolean;
  readonly description?: string;
  readonly schema: Schema;
}
export interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly tags: readonly string[];
  readonly security?: readonly unknown[];
  readonly 'x-scope'?: string;
  readonly 'x-websocket'?: boolean;
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: {
    readonly required: boolean;
    readonly description?: string;
    readonly content: Readonly<Record<string, Media>>;
  };
  readonly responses: Readonly<Record<string, ApiResponse>>;
}
export interface ApiResponse {
  readonly $ref?: string;
  readonly description?: string;
  readonly content?: Readonly<Record<string, Media>>;
  readonly headers?: Readonly<Record<string, unknown>>;
}
export interface ApiDocument {
  readonly info: { readonly title: string; readonly version: string; readonly description: string };
  readonly tags: readonly { readonly name: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
}
export interface ListedOperation extends Operation {
  readonly method: string;
  readonly url: string;
}

const { version } = JSON.parse(
  readFileSync(path.resolve(import.meta.dirname, '../../package.json'), 'utf8'),
) as { version: string };

/** Document that `/v1/openapi.json` answers with. */
export function apiDocument(): ApiDocument {
  return JSON.parse(JSON.stringify(openApiDocument(ROUTE_TABLE, version))) as ApiDocument;
}

/** Operations in the order of the route table. */
export function operationsOf(document: ApiDocument, tag: string): ListedOperation[] {
  return Object.entries(document.paths).flatMap(([url, methods]) =>
    Object.entries(methods)
      .filter(([, operation]) => operation.tags.includes(tag))
      .map(([method, operation]) => ({ ...operation, method: method.toUpperCase(), url })),
  );
}

/** Returns the scope that a key needs, or that none is needed. */
export function scopeText(operation: Operation): string {
  const scope = operation['x-scope'];
  if (operation.security?.length === 0) return 'no key';
  return scope === undefined || scope === 'any' ? 'any key' : `scope \`${scope}\``;
}

export const openApiJson: Generator = {
  file: 'docs/reference/openapi.json',
  render: () => `${JSON.stringify(openApiDocument(ROUTE_TABLE, version), null, 2)}\n`,
};
