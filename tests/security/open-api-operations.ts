import { randomBytes } from 'node:crypto';
import { request } from 'node:http';
import type { CallOptions, Target } from '../integration/http/fixture.ts';
import type { Schema } from './fuzz-inputs.ts';
import { sample } from './fuzz-inputs.ts';

export interface OpenApi {
  readonly paths: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
}

interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
}

export interface Operation {
  readonly method: string;
  readonly path: string;
  readonly operationId: string;
  readonly parameters: readonly Parameter[];
  readonly webSocket: boolean;
  /** A body that the route takes. */
  readonly options: CallOptions;
}

/** What a body needs beyond its form. */
const FIELDS = new Map<string, unknown>([
  ['command', ['true']],
  ['path', 'a.txt'],
  ['from', 'a.txt'],
  ['to', 'b.txt'],
  ['ttl', '10m'],
  ['signal', 'SIGTERM'],
  ['url', 'https://hook.example/'],
]);

function bodyOf(body: Record<string, { schema?: Schema }> | null, document: OpenApi): CallOptions {
  if (body === null) return {};
  const resolve = (ref: string) =>
    ref
      .slice(2)
      .split('/')
      .reduce<unknown>((at, step) => (at as Record<string, unknown>)[step], document) as Schema;
  const schema = body['application/json']?.schema;
  if (schema) return { json: sample(schema, resolve, FIELDS) };
  const [type = 'application/octet-stream'] = Object.keys(body);
  return { body: 'x', headers: { 'content-type': type === '*/*' ? 'application/octet-stream' : type } };
}

const QUERY: Readonly<Record<string, string>> = { path: 'a.txt', from: '1' };

/** Its path and a query that it takes, for these ids. */
export function addressOf(operation: Operation, ids: Readonly<Record<string, string>>): string {
  const path = operation.path.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent(ids[name] as string),
  );
  const query = operation.parameters
    .filter((parameter) => parameter.in === 'query' && QUERY[parameter.name] !== undefined)
    .map(({ name }) => `${name}=${QUERY[name]}`);
  return query.length > 0 ? `${path}?${query.join('&')}` : path;
}

/** Every route and verb of an OpenAPI document. */
export function readOperations(document: OpenApi): Operation[] {
  const list: Operation[] = [];
  for (const [path, methods] of Object.entries(document.paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      const {
        operationId,
        parameters = [],
        requestBody,
      } = operation as {
        operationId: string;
        parameters?: Parameter[];
        requestBody?: { content: Record<string, { schema?: Schema }> };
      };
      const webSocket = 'x-websocket' in (operation as object);
      const options = bodyOf(requestBody?.content ?? null, document);
      list.push({ method: method.toUpperCase(), path, operationId, parameters, webSocket, options });
    }
  }
  return list;
}

/** The answer to an attempt to open a WebSocket. */
export function openWebSocket(
  target: Target,
  key: string,
  path: string,
): Promise<{ status: number; headers: object; text: string }> {
  return new Promise((done, fail) => {
    const outgoing = request({
      ...target,
      path,
      agent: false,
      headers: {
        authorization: `Bearer ${key}`,
        connection: 'Upgrade',
        upgrade: 'websocket',
        'sec-websocket-version': '13',
        'sec-websocket-key': randomBytes(16).toString('base64'),
      },
    });
    outgoing.on('upgrade', (response, socket) => {
      socket.destroy();
      done({ status: 101, headers: response.headers, text: '' });
    });
    outgoing.on('response', (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (part: string) => {
        text += part;
      });
      response.on('end', () => done({ status: response.statusCode ?? 0, headers: response.headers, text }));
    });
    outgoing.on('error', fail);
    outgoing.end();
  });
}
