import type { WebSocket } from 'ws';
import type { z } from 'zod';
import { SandboxerError, toProblem } from '../../contract/errors/errors.ts';
import { ExecRequest, FRAME_TYPE, SignalRequest, TerminalSize } from '../../contract/sandboxes/exec.ts';
import type { Followed } from '../../control/use/exec-in-sandbox.ts';
import { execInSandbox } from '../../control/use/exec-in-sandbox.ts';
import { openSandbox } from '../../control/use/use-sandbox.ts';
import type { SandboxProcess } from '../../core/ports/session.ts';
import { parseJson } from '../parse/parse-json.ts';
import { invalidRequest, problemOf } from '../present/problem-of.ts';
import type { WebSocketContext } from '../route/web-socket-route.ts';
import type { HttpServices } from '../services/http-services.ts';
import { InputQueue } from './input-queue.ts';
import { controlFrame, frame, gapItem } from './stream-item.ts';
import { WebSocketSender } from './web-socket-sender.ts';

const HEADER_BYTES = 5;
const MOST_CONTROL_BYTES = 1_024;
const FIRST_MESSAGE_MS = 15_000;
const NORMAL = 1000;
const REFUSED = 1008;
const FAILED = 1011;

function parsed<S extends z.ZodType>(schema: S, bytes: Buffer): z.output<S> {
  const result = schema.safeParse(parseJson(bytes, true));
  if (!result.success) throw invalidRequest(result.error, 'body');
  return result.data;
}

interface Frame {
  readonly type: number;
  readonly payload: Buffer;
}

/** Parses whole frames, one or more in a message. */
function framesOf(message: Buffer): Frame[] {
  const frames: Frame[] = [];
  for (let at = 0; at < message.length; ) {
    if (message.length - at < HEADER_BYTES) throw brokenFrame();
    const end = at + HEADER_BYTES + message.readUInt32BE(at + 1);
    if (end > message.length) throw brokenFrame();
    frames.push({ type: message[at] as number, payload: message.subarray(at + HEADER_BYTES, end) });
    at = end;
  }
  return frames;
}

/** Sizes and signals are a few words. */
function short(payload: Buffer): Buffer {
  if (payload.length <= MOST_CONTROL_BYTES) return payload;
  throw new SandboxerError('SBX_INVALID_REQUEST', `A control frame has at most ${MOST_CONTROL_BYTES} bytes.`);
}

function brokenFrame(): SandboxerError {
  return new SandboxerError('SBX_INVALID_REQUEST', 'A message holds whole frames.');
}

/** Queues the messages of a socket. A message that arrives before it is asked for waits, and the socket is not read meanwhile. */
class Inbox {
  readonly #webSocket: WebSocket;
  readonly #early: Buffer[] = [];
  #take: ((message: Buffer) => void) | null = null;

  constructor(webSocket: WebSocket) {
    this.#webSocket = webSocket;
    webSocket.on('message', (data) => {
      if (this.#take) return this.#take(data as Buffer);
      this.#early.push(data as Buffer);
      webSocket.pause();
    });
  }

  first(): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      const late = () =>
        reject(new SandboxerError('SBX_REQUEST_TIMEOUT', 'The first message did not come in time.'));
      const timer = setTimeout(late, FIRST_MESSAGE_MS);
      this.#webSocket.once('message', () => {
        clearTimeout(timer);
        resolve(this.#early.shift() as Buffer);
      });
      this.#webSocket.once('close', () => {
        clearTimeout(timer);
        reject(new Error('The client hung up.'));
      });
    });
  }

  deliver(take: (message: Buffer) => void): void {
    for (const message of this.#early.splice(0)) take(message);
    this.#take = take;
    this.#webSocket.resume();
  }
}

/** Input goes in order; signals and sizes overtake it, so that a program that does not read can be interrupted. */
function inputTo(
  webSocket: WebSocket,
  process: SandboxProcess,
  request: ExecRequest,
  failed: (error: unknown) => void,
): (message: Buffer) => void {
  const input = new InputQueue(webSocket, failed);
  const { stdin, stdin_encoding } = request;
  if (stdin !== undefined) input.add(stdin.length, () => process.write(Buffer.from(stdin, stdin_encoding)));
  const take = ({ type, payload }: Frame): Promise<void> | undefined => {
    switch (type) {
      case FRAME_TYPE.stdin:
        input.add(payload.length, () => process.write(payload));
        return undefined;
      case FRAME_TYPE.stdinEnd:
        input.add(0, () => process.endInput());
        return undefined;
      case FRAME_TYPE.resize:
        return process.resize(parsed(TerminalSize, short(payload)));
      case FRAME_TYPE.signal:
        return process.kill(parsed(SignalRequest, short(payload)).signal);
      default:
        throw new SandboxerError('SBX_INVALID_REQUEST', `There is no frame of type ${type}.`);
    }
  };
  return (message) => {
    try {
      for (const received of framesOf(message)) take(received)?.catch(failed);
    } catch (error) {
      failed(error);
    }
  };
}

async function passOutput(
  services: HttpServices,
  sender: WebSocketSender,
  { process, startedAt, explain }: Followed,
): Promise<void> {
  try {
    await sender.send(controlFrame({ type: 'started', process_id: process.id }));
    for await (const chunk of process.output) {
      const bytes =
        chunk.stream === 'gap' ? controlFrame(gapItem(chunk)) : frame(FRAME_TYPE[chunk.stream], chunk.data);
      const room = sender.send(bytes);
      if (room) await room;
    }
    const exit = await process.exit;
    const duration_ms = services.control.clock.now() - startedAt;
    await sender.send(controlFrame({ type: 'exit', exit, duration_ms }));
  } catch (error) {
    throw await explain(error);
  }
}

function fail(services: HttpServices, webSocket: WebSocket, requestId: string, error: unknown): void {
  if (webSocket.readyState !== webSocket.OPEN) return;
  const problem = problemOf(error);
  if (problem.code === 'SBX_INTERNAL') {
    services.log.error({ err: error, request_id: requestId }, 'an interactive exec failed');
  }
  webSocket.send(controlFrame({ type: 'error', problem: toProblem(problem, requestId) }), { binary: true });
  webSocket.close(problem.status < 500 ? REFUSED : FAILED, problem.code);
  // Reading goes on so that the peer's close frame arrives.
  webSocket.resume();
}

/** Runs a program with its input open. Closing the connection kills it, unless it runs in the background. */
export async function connectExec(context: WebSocketContext<{ id: string }>): Promise<void> {
  const { services, caller, params, requestId, signal } = context;
  const { control } = services;
  await openSandbox(control, caller, { id: params.id, counts: false });
  const webSocket = await context.accept((socket, reason) => fail(services, socket, requestId, reason));
  const inbox = new Inbox(webSocket);
  try {
    const request = parsed(ExecRequest, await inbox.first());
    const started = await execInSandbox(control, caller, {
      id: params.id,
      request,
      interactive: true,
      signal,
    });
    const { process } = started;
    const detach = () => void process.detach().catch(() => {});
    if (webSocket.readyState !== webSocket.OPEN) return detach();
    webSocket.once('close', detach);
    signal.addEventListener('abort', detach, { once: true });
    const failed = (error: unknown) =>
      void started.explain(error).then((why) => fail(services, webSocket, requestId, why));
    inbox.deliver(inputTo(webSocket, process, request, failed));
    await passOutput(services, new WebSocketSender(webSocket), started);
    webSocket.close(NORMAL);
  } catch (error) {
    fail(services, webSocket, requestId, error);
  }
}
