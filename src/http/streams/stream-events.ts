import { SandboxerError } from '../../contract/errors/errors.ts';
import type { EventFilter } from '../../control/events/list-events.ts';
import { lastEventSeq, listEvents } from '../../control/events/list-events.ts';
import type { Exchange } from '../exchange/exchange.ts';
import { ClientGone } from '../exchange/exchange.ts';
import type { FeedMember, FeedReader } from '../services/event-feed.ts';
import type { HttpServices } from '../services/http-services.ts';
import { EVENT_STREAM } from './stream-item.ts';

const PAGE = 500;
const HEARTBEAT = Buffer.from(': \n\n');

interface CatchUp {
  readonly member: FeedMember;
  readonly reader: FeedReader;
  readonly from: number;
}

/** Reads the log until the feed can be followed without a gap. */
async function catchUp(
  services: HttpServices,
  exchange: Exchange,
  { member, reader, from }: CatchUp,
): Promise<void> {
  const { feed, control } = services;
  let cursor = from;
  while (!member.follow(reader, cursor)) {
    // The number is read before the page: an event up to it that the page does not have does not match.
    const last = await lastEventSeq(control);
    const page = await listEvents(control, reader.filter, { after: cursor, limit: PAGE });
    for (const event of page) exchange.response.write(feed.encode(event));
    await exchange.drained();
    const end = page.at(-1)?.seq ?? cursor;
    cursor = page.length < PAGE ? Math.max(end, last) : end;
  }
}

/** Sends server-sent events until the client leaves, falls too far behind, or the server stops. */
export async function streamEvents(
  services: HttpServices,
  exchange: Exchange,
  filter: EventFilter,
  after: number | null,
): Promise<void> {
  const { feed, limits } = services;
  const { response, signal } = exchange;
  const last = await lastEventSeq(services.control);
  // A number that was never given out comes from another log.
  const from = Math.min(after ?? last, last);
  // The answer ends with its connection: chunk framing of the same bytes for each of a thousand readers would cost more than all
  // else.
  response.removeHeader('transfer-encoding');
  exchange.begin(200, { 'content-type': EVENT_STREAM, 'x-accel-buffering': 'no', connection: 'close' });
  response.write('retry: 1000\n\n');

  let quiet = true;
  const take = (bytes: Uint8Array) => {
    quiet = false;
    response.write(bytes);
    // A reader that does not keep up is disconnected. It reconnects with the id of the last event that arrived.
    if (response.writableLength > limits.subscriberBytes) response.destroy();
  };
  const beat = setInterval(() => {
    if (quiet) response.write(HEARTBEAT);
    quiet = true;
  }, limits.heartbeatMs);
  let member: FeedMember | null = null;
  try {
    member = await feed.join();
    await catchUp(services, exchange, { member, reader: { filter, take }, from });
    await new Promise((_, reject) => {
      if (signal.aborted) reject(signal.reason);
      signal.addEventListener('abort', () => reject(signal.reason), { once: true });
    });
  } catch (error) {
    if (!(error instanceof ClientGone) && !response.destroyed) {
      const problem = error instanceof SandboxerError ? error : null;
      if (!problem) services.log.error({ err: error, request_id: exchange.id }, 'an event stream failed');
      // A comment of the stream, not an event of the log: no reader takes it for one.
      response.end(`: closing ${problem?.code ?? 'SBX_INTERNAL'}\n\n`);
    }
  } finally {
    clearInterval(beat);
    member?.leave();
  }
}
