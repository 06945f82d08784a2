import { SandboxerError } from '../../contract/errors/errors.ts';
import { WORKSPACE_HEADER } from '../../contract/tenancy/tenancy.ts';
import { WorkspaceId } from '../../contract/values/ids.ts';
import { API_VERSION, API_VERSION_HEADER } from '../../contract/values/version.ts';
import { actIn } from '../../control/tenancy/tenants.ts';
import type { Caller } from '../../core/tenancy/caller.ts';
import { requireScope } from '../../core/tenancy/caller.ts';
import { JsonScanner } from '../bounds/json-scanner.ts';
import type { Exchange } from '../exchange/exchange.ts';
import { ClientGone } from '../exchange/exchange.ts';
import { declaredLength, readBody } from '../exchange/read-body.ts';
import { requireClearHead } from '../parse/message-head.ts';
import { decodeText, parseScanned } from '../parse/parse-json.ts';
import { parseQuery } from '../parse/parse-query.ts';
import { invalidRequest, problemOf } from '../present/problem-of.ts';
import type { BodySpec, RouteDefinition } from '../route/route.ts';
import { STREAMED } from '../route/route.ts';
import type { HttpServices } from '../services/http-services.ts';
import { RequestAudit } from './request-audit.ts';

/** The caller of a public route, which has no key and no rights. */
const NOBODY: Caller = {
  actor: 'agt',
  workspaceId: '',
  orgId: '',
  keyId: null,
  scopes: new Set(),
  local: false,
};

const EMPTY_OBJECT = Buffer.from('{}');

export function requireApiVersion(exchange: Pick<Exchange, 'header'>): void {
  const asked = exchange.header(API_VERSION_HEADER);
  if (asked === undefined || asked === String(API_VERSION)) return;
  throw new SandboxerError('SBX_UPGRADE_REQUIRED', `This server speaks version ${API_VERSION} of the API.`, {
    members: { supported: [API_VERSION] },
  });
}

export async function identify(
  services: HttpServices,
  definition: RouteDefinition,
  exchange: Pick<Exchange, 'request'> & Partial<Pick<Exchange, 'response'>>,
  audit: RequestAudit,
): Promise<Caller> {
  if (definition.scope === 'public') return NOBODY;
  const { request, response } = exchange;
  let caller = audit.begin(await services.options.callerFor(request));
  services.limitRate(caller, response);
  const chosen = request.headers[WORKSPACE_HEADER];
  if (chosen !== undefined) {
    const workspaceId = WorkspaceId.safeParse(chosen);
    if (!workspaceId.success) {
      throw new SandboxerError(
        'SBX_INVALID_REQUEST',
        `The header ${WORKSPACE_HEADER} does not name a workspace.`,
        {
          field: WORKSPACE_HEADER,
        },
      );
    }
    caller = await actIn(services.control, caller, { workspaceId: workspaceId.data });
    audit.narrow(caller);
  }
  if (definition.scope !== 'any') requireScope(caller, definition.scope);
  return caller;
}

export function readAddress(definition: RouteDefinition, url: string, params: unknown) {
  const path = definition.params?.safeParse(params, { reportInput: true });
  if (path && !path.success) throw invalidRequest(path.error, 'path');
  const raw = parseQuery(url);
  const query = definition.query?.safeParse(raw, { reportInput: true });
  if (query && !query.success) throw invalidRequest(query.error, 'query');
  const [stranger] = definition.query ? [] : Object.keys(raw);
  if (stranger !== undefined) {
    throw new SandboxerError('SBX_INVALID_REQUEST', 'There is no such query parameter.', {
      field: stranger.slice(0, 128),
    });
  }
  return { params: path?.data, query: query?.data };
}

function mediaTypeOf(exchange: Exchange): string {
  return (exchange.header('content-type') ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? '';
}

function requireUtf8(exchange: Exchange): void {
  const charset = /;\s*charset\s*=\s*"?([^\s;"]+)/i.exec(exchange.header('content-type') ?? '')?.[1];
  if (charset === undefined || /^(?:utf-?8|us-ascii)$/i.test(charset)) return;
  throw new SandboxerError('SBX_UNSUPPORTED_MEDIA', 'Text is sent as UTF-8.');
}

function requireIdentityEncoding(exchange: Exchange): void {
  const encoding = exchange.header('content-encoding');
  if (encoding === undefined || encoding.toLowerCase() === 'identity') return;
  throw new SandboxerError('SBX_UNSUPPORTED_MEDIA', 'Bodies are sent without Content-Encoding.');
}

const YAML_TYPES = ['application/yaml', 'application/x-yaml', 'text/yaml'];

function acceptedTypes(spec: BodySpec): readonly string[] {
  if (spec.kind === 'stream') return spec.mediaTypes;
  return spec.kind === 'json' ? ['application/json'] : ['application/json', ...YAML_TYPES];
}

/** The bytes of a body that is kept whole. JSON is counted while it arrives. */
function receive(
  { limits }: HttpServices,
  { request, buffered }: Exchange,
  spec: Exclude<BodySpec, { kind: 'stream' }>,
  isYaml: boolean,
): Promise<Buffer> {
  const scanner = isYaml ? null : new JsonScanner(limits[spec.values]);
  return readBody(request, {
    bytes: limits[spec.limit],
    timeoutMs: limits.bodyMs,
    look(piece) {
      buffered?.grow(piece.length);
      scanner?.feed(piece);
    },
  });
}

async function readInput(services: HttpServices, exchange: Exchange, spec: BodySpec): Promise<unknown> {
  const mediaType = mediaTypeOf(exchange);
  const accepted = acceptedTypes(spec);
  const empty = declaredLength(exchange.request) === 0;
  const known = accepted.includes(mediaType) || accepted.includes('*/*');
  if (!known && !(mediaType === '' && (empty || spec.kind === 'stream'))) {
    throw new SandboxerError('SBX_UNSUPPORTED_MEDIA', `Send ${accepted[0]}.`);
  }
  requireIdentityEncoding(exchange);
  if (spec.kind === 'stream') return undefined;
  requireUtf8(exchange);
  const isYaml = YAML_TYPES.includes(mediaType);
  const bytes = empty ? EMPTY_OBJECT : await receive(services, exchange, spec, isYaml);
  if (spec.kind === 'document') {
    if (isYaml) return { kind: 'yaml', text: decodeText(bytes) };
    return { kind: 'json', document: await parseScanned(bytes, false) };
  }
  const value = await parseScanned(bytes.length === 0 ? EMPTY_OBJECT : bytes, spec.allowsNul);
  const parsed = spec.schema.safeParse(value, { reportInput: true });
  if (!parsed.success) throw invalidRequest(parsed.error, 'body');
  return parsed.data;
}

/** Registers the exchange until it is over: with the end of its caller's key, and with the caller's memory budget. */
function holdFor({ keyEnds, buffers }: HttpServices, exchange: Exchange, caller: Caller): void {
  const forget = keyEnds.watch(caller, (reason) => exchange.end(reason));
  const lease = buffers.lease(caller);
  exchange.buffered = lease;
  const over = () => {
    forget();
    lease.release();
  };
  if (exchange.response.destroyed) over();
  else exchange.response.once('close', over);
}

/** Serves one exchange, from the request line to the answer. Never rejects: an error becomes the answer. */
export async function serveRoute(
  services: HttpServices,
  definition: RouteDefinition,
  exchange: Exchange,
  rawParams: unknown,
): Promise<void> {
  const audit = new RequestAudit(services, definition, exchange.id);
  try {
    services.requireRunning();
    requireClearHead(exchange.request);
    requireApiVersion(exchange);
    const caller = await identify(services, definition, exchange, audit);
    if (caller !== NOBODY) holdFor(services, exchange, caller);
    const { params, query } = readAddress(definition, exchange.request.url ?? '', rawParams);
    const body = definition.body && (await readInput(services, exchange, definition.body));
    audit.saw(params, body);
    const context = { services, exchange, caller, params, query, body } as never;
    const answer = (await definition.handler(context)) as
      | typeof STREAMED
      | { status: number; body: unknown; headers?: Record<string, string> };
    await audit.done(answer);
    if (answer === STREAMED) {
      // The stream ended early because the request asked for the head alone: the answer is complete.
      if (exchange.headIsAll) exchange.response.end();
      return;
    }
    if (answer.body === undefined) exchange.sendEmpty(answer.status, answer.headers);
    else await exchange.sendJson(answer.status, answer.body, answer.headers);
  } catch (error) {
    await audit.failed(error);
    failExchange(services, exchange, error);
  }
}

/** The one funnel for errors. What is ours is logged once, with the request id. */
export function failExchange(
  services: HttpServices,
  exchange: Exchange,
  error: unknown,
  headers?: Record<string, string>,
): void {
  if (error instanceof ClientGone || exchange.response.destroyed || exchange.headIsAll) {
    exchange.leave();
    return;
  }
  const problem = problemOf(error);
  if (problem.status >= 500) {
    const level = problem.code === 'SBX_INTERNAL' ? 'error' : 'warn';
    const { method } = exchange.request;
    services.log[level](
      { err: error, request_id: exchange.id, method, code: problem.code },
      'a request failed',
    );
  }
  exchange.sendProblem(problem, headers);
}
