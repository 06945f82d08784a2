import { z } from 'zod';
import { ERRORS, Problem } from '../../contract/errors/errors.ts';
import { Profile } from '../../contract/profiles/profile.ts';
import { API_VERSION_HEADER } from '../../contract/values/version.ts';
import { PROBLEM_MEDIA_TYPE } from '../exchange/exchange.ts';
import type { RequestHeader, ResponseSpec, RouteDefinition } from './route.ts';

type JsonObject = Record<string, unknown>;

const HEADERS: Readonly<Record<RequestHeader, string>> = {
  'Idempotency-Key': 'A key of your own: repeating the request with it changes nothing more.',
  'Last-Event-ID': 'The number of the last event that arrived.',
  Range: 'A range of bytes.',
};
const BEARER = 'bearer';

/** Collects the named schemas of all routes, each once. Input and output forms that differ get two names. */
class Components {
  readonly schemas: JsonObject = {};

  reference(schema: z.ZodType, io: 'input' | 'output'): JsonObject {
    const {
      $schema: _,
      $defs = {},
      ...root
    } = z.toJSONSchema(schema, { io, unrepresentable: 'any' }) as JsonObject & {
      $defs?: Record<string, JsonObject>;
    };
    const { id } = z.globalRegistry.get(schema) ?? {};
    const named: Record<string, JsonObject> = { ...$defs };
    // A schema that refers to itself is among its own definitions already.
    if (typeof id === 'string') named[id] ??= root;
    const names = new Map(Object.entries(named).map(([name, body]) => [name, this.#nameFor(name, body, io)]));
    for (const [name, body] of Object.entries(named))
      this.schemas[names.get(name) as string] = rename(body, names);
    if (typeof id === 'string') return { $ref: `#/components/schemas/${names.get(id)}` };
    return rename(root, names) as JsonObject;
  }

  #nameFor(name: string, body: JsonObject, io: 'input' | 'output'): string {
    const plain = (candidate: string) => rename(body, new Map([[name, candidate]]));
    const known = this.schemas[name];
    const same = known === undefined || JSON.stringify(known) === JSON.stringify(plain(name));
    return same ? name : `${name}${io === 'input' ? 'Input' : 'Output'}`;
  }
}

/** `#/$defs/X` becomes the place where the document keeps it. */
function rename(value: unknown, names: ReadonlyMap<string, string>): unknown {
  if (Array.isArray(value)) return value.map((item) => rename(item, names));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, child]) => {
      if (key !== '$ref' || typeof child !== 'string') return [key, rename(child, names)];
      const name = child.replace('#/$defs/', '');
      return [key, `#/components/schemas/${names.get(name) ?? name}`];
    }),
  );
}

function parameters(definition: RouteDefinition, components: Components): JsonObject[] {
  const list: JsonObject[] = [];
  for (const place of ['params', 'query'] as const) {
    const schema = definition[place];
    if (!schema) continue;
    const { properties = {}, required = [] } = components.reference(schema, 'input') as {
      properties?: Record<string, JsonObject>;
      required?: string[];
    };
    for (const [name, { description, ...body }] of Object.entries(properties)) {
      list.push({
        name,
        in: place === 'params' ? 'path' : 'query',
        required: place === 'params' || required.includes(name),
        ...(description === undefined ? {} : { description }),
        schema: body,
        ...(body.type === 'array' ? { style: 'form', explode: true } : {}),
      });
    }
  }
  for (const name of definition.headers ?? []) {
    list.push({
      name,
      in: 'header',
      required: false,
      description: HEADERS[name],
      schema: { type: 'string' },
    });
  }
  return list;
}

function requestBody(definition: RouteDefinition, components: Components): JsonObject {
  const { body } = definition;
  if (!body) return {};
  const bytes = (types: readonly string[]) => Object.fromEntries(types.map((type) => [type, {}]));
  if (body.kind === 'stream') {
    return {
      requestBody: { description: body.description, required: true, content: bytes(body.mediaTypes) },
    };
  }
  if (body.kind === 'document') {
    const schema = components.reference(Profile, 'input');
    const content = { 'application/json': { schema }, 'application/yaml': { schema } };
    return { requestBody: { description: 'A profile.', required: true, content } };
  }
  const required = !body.schema.safeParse({}).success;
  const content = { 'application/json': { schema: components.reference(body.schema, 'input') } };
  return { requestBody: { required, content } };
}

function response({ description, content, headers = [] }: ResponseSpec, components: Components): JsonObject {
  const media = Object.entries(content).map(([type, schema]) => [
    type,
    schema === null ? {} : { schema: components.reference(schema, 'output') },
  ]);
  return {
    description,
    ...(media.length > 0 ? { content: Object.fromEntries(media) } : {}),
    ...(headers.length > 0
      ? { headers: Object.fromEntries(headers.map((name) => [name, { schema: { type: 'string' } }])) }
      : {}),
  };
}

function operation(definition: RouteDefinition, components: Components): JsonObject {
  const list = parameters(definition, components);
  return {
    operationId: definition.operationId,
    summary: definition.summary,
    tags: [definition.tag],
    ...(definition.scope === 'public' ? { security: [] } : { 'x-scope': definition.scope }),
    ...(definition.connect ? { 'x-websocket': true } : {}),
    ...(list.length > 0 ? { parameters: list } : {}),
    ...requestBody(definition, components),
    responses: {
      ...Object.fromEntries(
        Object.entries(definition.responses).map(([status, spec]) => [status, response(spec, components)]),
      ),
      default: { $ref: '#/components/responses/Problem' },
    },
  };
}

/** The route table as OpenAPI 3.1. */
export function openApiDocument(table: readonly RouteDefinition[], version: string): JsonObject {
  const components = new Components();
  const problem = components.reference(Problem, 'output');
  const paths: Record<string, JsonObject> = {};
  for (const definition of table) {
    const method = definition.method.toLowerCase();
    paths[definition.url] = { ...paths[definition.url], [method]: operation(definition, components) };
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'sand-boxer',
      version,
      description: `Establishes sandboxes. Answers carry \`${API_VERSION_HEADER}\`; errors are RFC 9457 problems with a code. HEAD works wherever GET does, and OPTIONS lists the methods of a path.`,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    jsonSchemaDialect: 'https://json-schema.org/draft/2020-12/schema',
    servers: [{ url: '/' }],
    security: [{ [BEARER]: [] }],
    tags: [...new Set(table.map(({ tag }) => tag))].map((name) => ({ name })),
    paths,
    components: {
      schemas: components.schemas,
      securitySchemes: { [BEARER]: { type: 'http', scheme: 'bearer' } },
      responses: {
        Problem: {
          description: 'The problem and its remedy.',
          content: { [PROBLEM_MEDIA_TYPE]: { schema: problem } },
        },
      },
    },
    'x-errors': Object.fromEntries(Object.entries(ERRORS).map(([code, entry]) => [code, { ...entry }])),
  };
}
