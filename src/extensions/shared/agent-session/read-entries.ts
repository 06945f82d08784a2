import type { AgentChannel } from './agent-channel.ts';
import { PayloadReader } from './payload.ts';
import { T } from './wire.ts';

/** Reads all entries up to the result, at most `limit`. */
export async function readEntries<Item>(
  channel: AgentChannel,
  limit: number,
  read: (reader: PayloadReader) => Item,
): Promise<{ items: Item[]; rest: PayloadReader }> {
  const items: Item[] = [];
  for (;;) {
    const frame = await channel.next();
    if (frame?.type === T.result) return { items, rest: new PayloadReader(frame.data) };
    if (frame?.type === T.error) throw channel.errorOf(frame);
    if (frame?.type !== T.entries) throw channel.violation('something other than entries came');
    channel.reading(() => {
      for (const reader = new PayloadReader(frame.data); !reader.ended; ) items.push(read(reader));
    });
    if (items.length > limit) throw channel.violation('more entries came than were asked for');
  }
}
