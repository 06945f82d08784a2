import { z } from 'zod';
import {
  FRAMES_MEDIA_TYPE,
  ProcessInfo,
  ResizeRequest,
  ServiceName,
  SignalRequest,
} from '../../contract/sandboxes/exec.ts';
import { SetupLog } from '../../contract/sandboxes/setup-log.ts';
import { sandboxSetup } from '../../control/sandboxes/get-sandbox.ts';
import { actOnProcess, writeToProcess } from '../../control/use/act-on-process.ts';
import { attachToProcess, listProcesses } from '../../control/use/exec-in-sandbox.ts';
import { Upload } from '../exchange/read-body.ts';
import { preferredType } from '../parse/media-type.ts';
import { flag, wholeNumber } from '../parse/query-schemas.ts';
import { SandboxPathParams } from '../parse/sandbox-id.ts';
import { json, jsonBody, nothing, route, STREAMED } from '../route/route.ts';
import { EVENT_STREAM, NDJSON } from '../streams/stream-item.ts';
import { streamProcess } from '../streams/stream-process.ts';
import { STREAM_CONTENT } from './exec.ts';

const ProcessList = z.strictObject({ items: z.array(ProcessInfo) }).meta({ id: 'ProcessList' });
const ProcessPathParams = SandboxPathParams.extend({
  process_id: z
    .string()
    .max(200)
    .regex(/^[\x21-\x7e]+$/, 'A process id has visible ASCII characters.'),
});

const tag = 'exec';
/** The time for a signal or input to arrive before its channel is closed. */
const ARRIVAL_MS = 100;
const DEATH_MS = 5_000;

export const processRoutes = [
  route({
    method: 'GET',
    url: '/v1/sandboxes/{id}/setup',
    operationId: 'readSetupLog',
    summary:
      'Its instructions, and what the setup commands of its profile wrote, attempt by attempt; of a failed sandbox, too.',
    tag,
    scope: 'read',
    params: SandboxPathParams,
    responses: { 200: json(SetupLog, 'The commands in order, with their output.') },
    async handler({ services, caller, params }) {
      const setup = await sandboxSetup(services.control, caller, { id: params.id });
      return { status: 200, body: services.present.setup(setup) };
    },
  }),
  route({
    method: 'GET',
    url: '/v1/sandboxes/{id}/processes',
    operationId: 'listProcesses',
    summary: 'List the processes that were started through the API.',
    tag,
    scope: 'read',
    params: SandboxPathParams,
    query: z.strictObject({
      service: ServiceName.optional().describe('Of this service instead of the default one.'),
    }),
    responses: { 200: json(ProcessList, 'The processes.') },
    async handler({ services, caller, params, query }) {
      const items = await listProcesses(services.control, caller, { id: params.id, service: query.service });
      return { status: 200, body: { items } };
    },
  }),
  route({
    method: 'GET',
    url: '/v1/sandboxes/{id}/processes/{process_id}/output',
    operationId: 'readProcessOutput',
    summary: 'Follow the output of a background process, from an offset. Hanging up leaves it running.',
    tag,
    scope: 'read',
    params: ProcessPathParams,
    query: z.strictObject({ from: wholeNumber(0, Number.MAX_SAFE_INTEGER).default(0) }),
    responses: { 200: { description: 'Output of the process, then its exit.', content: STREAM_CONTENT } },
    async handler({ services, exchange, caller, params, query }) {
      const type = preferredType(exchange.header('accept'), [NDJSON, EVENT_STREAM, FRAMES_MEDIA_TYPE]);
      exchange.response.once('close', services.slots.take(caller));
      const { signal } = exchange;
      const followed = await attachToProcess(services.control, caller, {
        id: params.id,
        processId: params.process_id,
        from: query.from,
        signal,
      });
      await streamProcess(services, exchange, type, followed);
      return STREAMED;
    },
  }),
  route({
    method: 'POST',
    url: '/v1/sandboxes/{id}/processes/{process_id}/signal',
    operationId: 'signalProcess',
    summary: 'Send a signal to a process and all its descendants.',
    tag,
    scope: 'sandboxes',
    params: ProcessPathParams,
    body: jsonBody(SignalRequest),
    responses: { 204: nothing('It was sent; to a process that has ended, in vain.') },
    async handler({ services, caller, params, body }) {
      const lingerMs = body.signal === 'SIGKILL' ? DEATH_MS : ARRIVAL_MS;
      await actOnProcess(services.control, caller, {
        id: params.id,
        processId: params.process_id,
        lingerMs,
        act: (process) => process.kill(body.signal),
      });
      return { status: 204, body: undefined };
    },
  }),
  route({
    method: 'DELETE',
    url: '/v1/sandboxes/{id}/processes/{process_id}',
    operationId: 'killProcess',
    summary: 'Kill a process and all its descendants.',
    tag,
    scope: 'sandboxes',
    params: ProcessPathParams,
    responses: { 204: nothing('It was killed, or had ended.') },
    async handler({ services, caller, params }) {
      await actOnProcess(services.control, caller, {
        id: params.id,
        processId: params.process_id,
        lingerMs: DEATH_MS,
        act: (process) => process.kill('SIGKILL'),
      });
      return { status: 204, body: undefined };
    },
  }),
  route({
    method: 'POST',
    url: '/v1/sandboxes/{id}/processes/{process_id}/resize',
    operationId: 'resizeProcess',
    summary: 'Change the size of a process’s terminal.',
    tag,
    scope: 'sandboxes',
    params: ProcessPathParams,
    body: jsonBody(ResizeRequest),
    responses: { 204: nothing('The terminal has the new size.') },
    async handler({ services, caller, params, body }) {
      await actOnProcess(services.control, caller, {
        id: params.id,
        processId: params.process_id,
        lingerMs: ARRIVAL_MS,
        act: (process) => process.resize(body),
      });
      return { status: 204, body: undefined };
    },
  }),
  route({
    method: 'POST',
    url: '/v1/sandboxes/{id}/processes/{process_id}/stdin',
    operationId: 'writeProcessInput',
    summary: 'Write to the input of a process that keeps it open (`stdin_open`, or a terminal).',
    tag,
    scope: 'sandboxes',
    params: ProcessPathParams,
    query: z.strictObject({ end: flag().default(false) }),
    body: {
      kind: 'stream',
      mediaTypes: ['application/octet-stream'],
      description: 'The bytes to write.',
    } as const,
    responses: { 204: nothing('It was written.') },
    async handler({ services, exchange, caller, params, query }) {
      const { uploadBytes, idleUploadMs } = services.limits;
      const upload = new Upload(exchange, uploadBytes, idleUploadMs);
      await writeToProcess(services.control, caller, {
        id: params.id,
        processId: params.process_id,
        lingerMs: ARRIVAL_MS,
        write: (process) =>
          upload.into(async (body) => {
            for await (const chunk of body) await process.write(chunk);
            if (query.end) await process.endInput();
          }),
      });
      return { status: 204, body: undefined };
    },
  }),
];
