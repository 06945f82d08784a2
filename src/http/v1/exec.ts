import {
  ExecRequest,
  ExecResult,
  ExecStreamItem,
  FRAMES_MEDIA_TYPE,
  ProcessInfo,
} from '../../contract/sandboxes/exec.ts';
import { execInSandbox, leaveInBackground } from '../../control/use/exec-in-sandbox.ts';
import { isoTime } from '../../core/ports/clock.ts';
import { preferredType } from '../parse/media-type.ts';
import { SandboxPathParams } from '../parse/sandbox-id.ts';
import { json, route, STREAMED } from '../route/route.ts';
import { webSocketRoute } from '../route/web-socket-route.ts';
import { collectProcess } from '../streams/collect-process.ts';
import { connectExec } from '../streams/connect-exec.ts';
import { EVENT_STREAM, NDJSON } from '../streams/stream-item.ts';
import type { StreamType } from '../streams/stream-process.ts';
import { streamProcess } from '../streams/stream-process.ts';

export const STREAM_CONTENT = {
  [NDJSON]: ExecStreamItem,
  [EVENT_STREAM]: ExecStreamItem,
  [FRAMES_MEDIA_TYPE]: null,
} as const;
const TYPES = ['application/json', NDJSON, EVENT_STREAM, FRAMES_MEDIA_TYPE] as const;

const result = json(ExecResult, 'The program has ended; or its output as a stream, as `Accept` asks.');
const ended: typeof result = { ...result, content: { 'application/json': ExecResult, ...STREAM_CONTENT } };

export const execRoutes = [
  route({
    method: 'POST',
    url: '/v1/sandboxes/{id}/exec',
    operationId: 'execInSandbox',
    summary: 'Run a program. Hanging up kills it, unless it runs in the background.',
    tag: 'exec',
    scope: 'sandboxes',
    params: SandboxPathParams,
    body: {
      kind: 'json',
      schema: ExecRequest,
      limit: 'execBytes',
      values: 'largeJsonValues',
      allowsNul: true,
    } as const,
    responses: {
      200: ended,
      202: json(ProcessInfo, 'It runs in the background; read its output at `Location`.', ['Location']),
    },
    async handler({ services, exchange, caller, params, body }) {
      const type = preferredType(exchange.header('accept'), TYPES);
      exchange.response.once('close', services.slots.take(caller));
      const started = await execInSandbox(services.control, caller, {
        id: params.id,
        request: body,
        interactive: false,
        signal: exchange.signal,
      });
      if (type !== 'application/json') {
        await streamProcess(services, exchange, type satisfies StreamType, started);
        return STREAMED;
      }
      if (!body.background) {
        return { status: 200, body: await collectProcess(services, exchange, started) };
      }
      const { process, startedAt } = started;
      await leaveInBackground(started);
      const processes = `${services.present.sandboxUrl(params.id)}/processes`;
      return {
        status: 202,
        body: {
          process_id: process.id,
          command: typeof body.command === 'string' ? ['/bin/sh', '-c', body.command] : body.command,
          started_at: isoTime(startedAt),
          running: true,
          exit: null,
          tty: body.tty !== undefined,
          background: true,
        },
        headers: { location: `${processes}/${encodeURIComponent(process.id)}/output` },
      };
    },
  }),
  webSocketRoute({
    url: '/v1/sandboxes/{id}/exec',
    operationId: 'execInteractively',
    summary:
      'Run a program interactively. The first message is an ExecRequest; binary frames follow both ways.',
    tag: 'exec',
    scope: 'sandboxes',
    params: SandboxPathParams,
    beginsWithRequest: true,
    connect: connectExec,
  }),
];
