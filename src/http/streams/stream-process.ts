import type { ServerResponse } from 'node:http';
import { toProblem } from '../../contract/errors/errors.ts';
import { FRAMES_MEDIA_TYPE } from '../../contract/sandboxes/exec.ts';
import type { Followed } from '../../control/use/exec-in-sandbox.ts';
import type { OutputChunk, ServiceLog } from '../../core/ports/session.ts';
import type { Exchange } from '../exchange/exchange.ts';
import { ClientGone } from '../exchange/exchange.ts';
import { problemOf } from '../present/problem-of.ts';
import type { HttpServices } from '../services/http-services.ts';
import type { ItemFormat } from './stream-item.ts';
import { EVENT_STREAM, FRAMES, gapItem, LINES, NDJSON, SERVER_SENT } from './stream-item.ts';

const STREAM_FORMATS = {
  [NDJSON]: LINES,
  [EVENT_STREAM]: SERVER_SENT,
  [FRAMES_MEDIA_TYPE]: FRAMES,
} as const satisfies Record<string, ItemFormat>;
export type StreamType = keyof typeof STREAM_FORMATS;

/** A client that hangs up lets go of the process: one in the foreground is killed by that. */
export function detachWhenGone(exchange: Exchange, process: Pick<ServiceLog, 'detach'>): void {
  const detach = () => void process.detach().catch(() => {});
  if (exchange.signal.aborted) detach();
  else exchange.signal.addEventListener('abort', detach, { once: true });
}

/** Writes a chunk; returns whether there is room for more. The chunk is done with when its last part has left this process. */
function writeOutput(response: ServerResponse, format: ItemFormat, chunk: OutputChunk): boolean {
  const parts = format.output(chunk);
  const last = parts.length - 1;
  let room = true;
  for (const [n, part] of parts.entries())
    room = n === last ? response.write(part, () => chunk.done?.()) : response.write(part);
  return room;
}

/** Writes a process, or a log, as a stream until it ends. An error on the way is the last item. */
export async function streamProcess(
  services: HttpServices,
  exchange: Exchange,
  type: StreamType,
  { process, startedAt, endedAt, explain }: Followed<ServiceLog>,
): Promise<void> {
  const format = STREAM_FORMATS[type];
  const { response } = exchange;
  detachWhenGone(exchange, process);
  exchange.begin(200, { 'content-type': type, 'x-accel-buffering': 'no' });
  // A program may be silent for hours; a proxy between this server and the client may not wait that long.
  const beat = () => response.write(': \n\n');
  const beating = type === EVENT_STREAM ? setInterval(beat, services.limits.heartbeatMs) : undefined;
  try {
    await exchange.write(format.control({ type: 'started', process_id: process.id }));
    for await (const chunk of process.output) {
      const room =
        chunk.stream === 'gap'
          ? response.write(format.control(gapItem(chunk)))
          : writeOutput(response, format, chunk);
      if (!room) await exchange.drained();
    }
    const exit = await process.exit;
    const duration_ms = Math.max(0, (endedAt ?? services.control.clock.now()) - startedAt);
    response.end(format.control({ type: 'exit', exit, duration_ms }));
  } catch (error) {
    const why = exchange.signal.aborted ? exchange.signal.reason : await explain(error);
    if (why instanceof ClientGone || response.destroyed) return exchange.leave();
    const problem = problemOf(why);
    if (problem.code === 'SBX_INTERNAL') {
      services.log.error({ err: why, request_id: exchange.id }, 'a stream failed');
    }
    response.end(format.control({ type: 'error', problem: toProblem(problem, exchange.id) }));
    void process.detach().catch(() => {});
  } finally {
    clearInterval(beating);
  }
}
