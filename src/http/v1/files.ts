import { z } from 'zod';
import { SandboxerError } from '../../contract/errors/errors.ts';
import { ServiceName } from '../../contract/sandboxes/exec.ts';
import {
  FileChange,
  FileEntry,
  FileListing,
  MkdirRequest,
  MoveRequest,
  SandboxPath,
} from '../../contract/sandboxes/files.ts';
import { openFiles } from '../../control/use/use-sandbox.ts';
import type { LeftOut, SandboxFiles } from '../../core/ports/session.ts';
import type { Exchange } from '../exchange/exchange.ts';
import { Upload } from '../exchange/read-body.ts';
import { preferredType } from '../parse/media-type.ts';
import { flag, wholeNumber } from '../parse/query-schemas.ts';
import { SandboxPathParams } from '../parse/sandbox-id.ts';
import { json, jsonBody, nothing, route, STREAMED } from '../route/route.ts';
import type { HttpServices } from '../services/http-services.ts';
import { sendFile } from '../streams/send-file.ts';
import { EVENT_STREAM, NDJSON } from '../streams/stream-item.ts';

const Where = z.strictObject({
  service: ServiceName.optional().describe('Of this service instead of the default one.'),
});
const At = Where.extend({ path: SandboxPath });
const Mode = z
  .string()
  .regex(/^[0-7]{3,5}$/, 'Write the permission bits in octal, such as "644".')
  .transform((octal) => Number.parseInt(octal, 8))
  .refine((mode) => mode <= 0o7777, 'Permission bits end at 7777.');
const UploadedTree = z.strictObject({ files: z.number().int() }).meta({ id: 'UploadedTree' });

const tag = 'files';
/** Trailers: what is left out is known when the rest was sent. */
const LEFT_OUT_COUNT = 'X-Sandboxer-Left-Out-Count';
const LEFT_OUT = 'X-Sandboxer-Left-Out';
const MOST_NAMED = 20;
const BYTES = { 'application/octet-stream': null } as const;

function uploadOf({ limits }: HttpServices, exchange: Exchange): Upload {
  return new Upload(exchange, limits.uploadBytes, limits.idleUploadMs);
}

/** Streams changes as they happen, until the client hangs up. The head is sent once they are followed, not before. */
async function streamChanges(
  services: HttpServices,
  exchange: Exchange,
  files: SandboxFiles,
  { path, recursive }: { readonly path: string; readonly recursive: boolean },
): Promise<void> {
  const { response, signal } = exchange;
  if (!files.watch) throw new SandboxerError('SBX_UNSUPPORTED', 'The backend cannot watch files.');
  const type = preferredType(exchange.header('accept'), [NDJSON, EVENT_STREAM]);
  const sse = type === EVENT_STREAM;
  const changes = await files.watch(path, { recursive, signal });
  exchange.begin(200, { 'content-type': type, 'x-accel-buffering': 'no' });
  const beat = () => response.write(sse ? ': \n\n' : '\n');
  const beating = setInterval(beat, services.limits.heartbeatMs);
  beat();
  try {
    for await (const change of changes) {
      const text = JSON.stringify(change);
      await exchange.write(sse ? `event: change\ndata: ${text}\n\n` : `${text}\n`);
    }
    response.end();
  } finally {
    clearInterval(beating);
  }
}

/** A tree of which something cannot be read, with what to do about it. */
function orSkip(error: unknown): unknown {
  if (!(error instanceof SandboxerError) || error.code !== 'SBX_PATH_REFUSED') return error;
  const remedy = 'Make it readable to the user of the sandbox, or ask with unreadable=skip to leave it out.';
  return new SandboxerError(error.code, error.detail, { ...error.extras, remedy });
}

export const fileRoutes = [
  ...(['GET', 'HEAD'] as const).map((method) =>
    route({
      method,
      url: '/v1/sandboxes/{id}/files',
      operationId: method === 'GET' ? 'readFile' : 'statFile',
      summary: method === 'GET' ? 'Read a file, or a range of it.' : 'The size of a file.',
      tag,
      scope: 'read',
      params: SandboxPathParams,
      query: At,
      headers: ['Range'],
      responses: {
        200: { description: 'The bytes of the file.', content: BYTES },
        206: { description: 'The bytes of the range.', content: BYTES, headers: ['Content-Range'] },
      },
      async handler({ services, exchange, caller, params, query }) {
        const files = await openFiles(services.control, caller, {
          id: params.id,
          writes: false,
          service: query.service,
        });
        await sendFile(exchange, files, query.path);
        return STREAMED;
      },
    }),
  ),
  route({
    method: 'PUT',
    url: '/v1/sandboxes/{id}/files',
    operationId: 'writeFile',
    summary: 'Write a file as a whole. Missing directories are made.',
    tag,
    scope: 'sandboxes',
    params: SandboxPathParams,
    query: At.extend({ mode: Mode.optional(), exclusive: flag().default(false) }),
    body: { kind: 'stream', mediaTypes: ['*/*'], description: 'The bytes of the file.' } as const,
    responses: { 200: json(FileEntry, 'The file as it is now.') },
    async handler({ services, exchange, caller, params, query }) {
      const files = await openFiles(services.control, caller, {
        id: params.id,
        writes: true,
        service: query.service,
      });
      const options = {
        ...(query.mode === undefined ? {} : { mode: query.mode }),
        exclusive: query.exclusive,
        signal: exchange.signal,
      };
      const upload = uploadOf(services, exchange);
      return { status: 200, body: await upload.into((body) => files.write(query.path, body, options)) };
    },
  }),
  route({
    method: 'DELETE',
    url: '/v1/sandboxes/{id}/files',
    operationId: 'removeFile',
    summary: 'Remove a file or a directory. A missing path is not an error.',
    tag,
    scope: 'sandboxes',
    params: SandboxPathParams,
    query: At.extend({ recursive: flag().default(false) }),
    responses: { 204: nothing('It is not there any more.') },
    async handler({ services, exchange, caller, params, query }) {
      const files = await openFiles(services.control, caller, {
        id: params.id,
        writes: true,
        service: query.service,
      });
      await files.remove(query.path, { recursive: query.recursive, signal: exchange.signal });
      return { status: 204, body: undefined };
    },
  }),
  route({
    method: 'GET',
    url: '/v1/sandboxes/{id}/files/list',
    operationId: 'listFiles',
    summary: 'List a directory.',
    tag,
    scope: 'read',
    params: SandboxPathParams,
    query: At.extend({ limit: wholeNumber(1, 100_000).default(10_000) }),
    responses: { 200: json(FileListing, 'Its entries.') },
    async handler({ services, exchange, caller, params, query }) {
      const files = await openFiles(services.control, caller, {
        id: params.id,
        writes: false,
        service: query.service,
      });
      const listing = await files.list(query.path, { limit: query.limit, signal: exchange.signal });
      return { status: 200, body: { path: query.path, ...listing } };
    },
  }),
  route({
    method: 'GET',
    url: '/v1/sandboxes/{id}/files/stat',
    operationId: 'statPath',
    summary: 'Describe a path; a symbolic link is described itself.',
    tag,
    scope: 'read',
    params: SandboxPathParams,
    query: At,
    responses: { 200: json(FileEntry, 'What is there.') },
    async handler({ services, exchange, caller, params, query }) {
      const files = await openFiles(services.control, caller, {
        id: params.id,
        writes: false,
        service: query.service,
      });
      return { status: 200, body: await files.stat(query.path, { signal: exchange.signal }) };
    },
  }),
  route({
    method: 'POST',
    url: '/v1/sandboxes/{id}/files/mkdir',
    operationId: 'makeDirectory',
    summary: 'Make a directory.',
    tag,
    scope: 'sandboxes',
    params: SandboxPathParams,
    query: Where,
    body: jsonBody(MkdirRequest),
    responses: { 204: nothing('It is there.') },
    async handler({ services, exchange, caller, params, query, body }) {
      const files = await openFiles(services.control, caller, {
        id: params.id,
        writes: true,
        service: query.service,
      });
      await files.mkdir(body.path, { parents: body.parents, mode: body.mode, signal: exchange.signal });
      return { status: 204, body: undefined };
    },
  }),
  route({
    method: 'POST',
    url: '/v1/sandboxes/{id}/files/move',
    operationId: 'moveFile',
    summary: 'Move or rename a file or a directory.',
    tag,
    scope: 'sandboxes',
    params: SandboxPathParams,
    query: Where,
    body: jsonBody(MoveRequest),
    responses: { 204: nothing('It is at its new place.') },
    async handler({ services, exchange, caller, params, query, body }) {
      const files = await openFiles(services.control, caller, {
        id: params.id,
        writes: true,
        service: query.service,
      });
      await files.move(body.from, body.to, { overwrite: body.overwrite, signal: exchange.signal });
      return { status: 204, body: undefined };
    },
  }),
  route({
    method: 'GET',
    url: '/v1/sandboxes/{id}/files/watch',
    operationId: 'watchFiles',
    summary: 'Follow the changes below a directory. Every change after the answer has begun is reported.',
    tag,
    scope: 'read',
    params: SandboxPathParams,
    query: At.extend({ recursive: flag().default(false) }),
    responses: {
      200: {
        description: 'Changes as they happen; empty lines keep the connection alive.',
        content: { [NDJSON]: FileChange, [EVENT_STREAM]: FileChange },
      },
    },
    async handler({ services, exchange, caller, params, query }) {
      exchange.response.once('close', services.slots.take(caller));
      const files = await openFiles(services.control, caller, {
        id: params.id,
        writes: false,
        service: query.service,
      });
      await streamChanges(services, exchange, files, query);
      return STREAMED;
    },
  }),
  route({
    method: 'PUT',
    url: '/v1/sandboxes/{id}/files/tree',
    operationId: 'uploadTree',
    summary: 'Unpack a tar archive below a directory.',
    tag,
    scope: 'sandboxes',
    params: SandboxPathParams,
    query: At,
    body: {
      kind: 'stream',
      mediaTypes: ['application/x-tar', 'application/octet-stream'],
      description: 'A tar archive.',
    } as const,
    responses: { 200: json(UploadedTree, 'How many files were written.') },
    async handler({ services, exchange, caller, params, query }) {
      const files = await openFiles(services.control, caller, {
        id: params.id,
        writes: true,
        service: query.service,
      });
      const { signal } = exchange;
      const upload = uploadOf(services, exchange);
      return { status: 200, body: await upload.into((body) => files.upload(query.path, body, { signal })) };
    },
  }),
  route({
    method: 'GET',
    url: '/v1/sandboxes/{id}/files/tree',
    operationId: 'downloadTree',
    summary: 'Pack a directory as a tar archive.',
    tag,
    scope: 'read',
    params: SandboxPathParams,
    query: At.extend({
      unreadable: z
        .enum(['refuse', 'skip'])
        .default('refuse')
        .describe('Treatment of a path below that cannot be read or is too long.'),
    }),
    responses: {
      200: {
        description: `A tar archive. With \`unreadable=skip\` the trailers \`${LEFT_OUT_COUNT}\` and \`${LEFT_OUT}\` hold the number of omitted paths, if any, and the first paths, percent-encoded.`,
        content: { 'application/x-tar': null },
      },
    },
    async handler({ services, exchange, caller, params, query }) {
      exchange.response.once('close', services.slots.take(caller));
      const files = await openFiles(services.control, caller, {
        id: params.id,
        writes: false,
        service: query.service,
      });
      const onLeftOut = ({ count, paths }: LeftOut) =>
        exchange.response.addTrailers({
          [LEFT_OUT_COUNT]: String(count),
          [LEFT_OUT]: paths.slice(0, MOST_NAMED).map(encodeURIComponent).join(', '),
        });
      const skips = query.unreadable === 'skip';
      const tar = await files
        .download(query.path, { signal: exchange.signal, ...(skips && { onLeftOut }) })
        .catch((error: unknown) => {
          throw skips ? error : orSkip(error);
        });
      exchange.begin(200, {
        'content-type': 'application/x-tar',
        'content-disposition': 'attachment',
        ...(skips && { trailer: `${LEFT_OUT_COUNT}, ${LEFT_OUT}` }),
      });
      for await (const chunk of tar) await exchange.write(chunk);
      exchange.response.end();
      return STREAMED;
    },
  }),
];
