import type { EventFilter } from '../../control/events/list-events.ts';
import type { EventRecord } from '../../core/events/event.ts';
import type { Log } from '../../core/ports/log.ts';
import type { Store } from '../../core/ports/store/store.ts';

/** A follower of the log. `take` gets bytes that are shared with others: they must not be changed. */
export interface FeedReader {
  readonly filter: EventFilter;
  take(bytes: Uint8Array): void;
}

export interface FeedMember {
  /**
   * Goes live at `cursor`, unless the feed has gone past it: then `false`, and the reader has to catch up from the store
   * first.
   */
  follow(reader: FeedReader, cursor: number): boolean;
  leave(): void;
}

interface Entry {
  readonly event: EventRecord;
  readonly bytes: Buffer;
}

interface Follower {
  readonly reader: FeedReader;
  /** Followers with the same key get the very same bytes. */
  readonly key: string;
  /** The number of the last event that the follower was served. */
  cursor: number;
}

const BATCH = 1_000;
const RETRY_MS = 1_000;
/** With many followers, a few milliseconds of patience save most of the writing. */
const FOLLOWERS_PER_MS = 32;
const MOST_PATIENCE_MS = 100;

function keyOf({ workspaceId, sandboxUid, types }: EventFilter): string {
  return JSON.stringify([workspaceId, sandboxUid ?? null, types ?? null]);
}

function matches({ workspaceId, sandboxUid, types }: EventFilter, event: EventRecord): boolean {
  return (
    (workspaceId === null || event.workspaceId === workspaceId) &&
    (sandboxUid === undefined || event.sandboxUid === sandboxUid) &&
    (types === undefined || types.includes(event.type))
  );
}

/**
 * Follows the tail of the event log, with one read for all followers. A commit wakes the feed; each event is encoded once, and
 * followers with the same filter share the bytes.
 */
export class EventFeed {
  readonly #store: Store;
  readonly #log: Log;
  readonly #encode: (event: EventRecord) => Buffer;
  readonly #followers = new Set<Follower>();
  #members = 0;
  #tail: number | null = null;
  #starting: Promise<void> | null = null;
  #stopListening: (() => void) | null = null;
  #timer: NodeJS.Timeout | null = null;
  #pumping = false;
  #again = false;

  constructor(store: Store, log: Log, encode: (event: EventRecord) => Buffer) {
    this.#store = store;
    this.#log = log;
    this.#encode = encode;
  }

  get followers(): number {
    return this.#followers.size;
  }

  encode(event: EventRecord): Buffer {
    return this.#encode(event);
  }

  /** Keeps the feed running until `leave`; it can be followed from then on. */
  async join(): Promise<FeedMember> {
    this.#members += 1;
    try {
      this.#starting ??= this.#tail === null ? this.#start() : null;
      await this.#starting;
    } catch (error) {
      this.#leave(null);
      throw error;
    }
    let follower: Follower | null = null;
    let left = false;
    return {
      follow: (reader, cursor) => {
        if (this.#tail === null || cursor < this.#tail) return false;
        follower = { reader, key: keyOf(reader.filter), cursor };
        this.#followers.add(follower);
        return true;
      },
      leave: () => {
        if (!left) this.#leave(follower);
        left = true;
      },
    };
  }

  #leave(follower: Follower | null): void {
    if (follower) this.#followers.delete(follower);
    this.#members -= 1;
    if (this.#members === 0) this.#stop();
  }

  async #start(): Promise<void> {
    try {
      // Listening comes first: a later commit is then seen, whether it comes before the read or after it.
      this.#stopListening ??= this.#store.onCommit((notice) => {
        if (this.#tail !== null && notice.lastSeq > this.#tail) this.#wake();
      });
      const last = await this.#store.read('feed', (tx) => tx.events.lastSeq());
      this.#tail = last;
      this.#wake();
    } finally {
      this.#starting = null;
    }
  }

  #stop(): void {
    this.#stopListening?.();
    this.#stopListening = null;
    this.#tail = null;
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = null;
  }

  #wake(): void {
    if (this.#pumping) {
      this.#again = true;
      return;
    }
    if (this.#timer) return;
    const patience = Math.min(MOST_PATIENCE_MS, Math.floor(this.#followers.size / FOLLOWERS_PER_MS));
    this.#timer = setTimeout(() => void this.#pump(), patience);
  }

  async #pump(): Promise<void> {
    this.#timer = null;
    this.#pumping = true;
    let retry = false;
    try {
      for (;;) {
        const tail = this.#tail;
        if (tail === null) return;
        this.#again = false;
        const query = { workspaceId: null, after: tail, limit: BATCH };
        const events = await this.#store.read('feed', (tx) => tx.events.list(query));
        if (this.#tail !== tail) return;
        this.#deliver(events, tail);
        if (events.length < BATCH) break;
      }
    } catch (error) {
      retry = true;
      this.#log.error({ err: error }, 'the event feed could not read the log; it tries again');
    } finally {
      this.#pumping = false;
      if (this.#tail !== null && retry) this.#timer ??= setTimeout(() => void this.#pump(), RETRY_MS);
      else if (this.#tail !== null && this.#again) this.#wake();
    }
  }

  #deliver(events: readonly EventRecord[], tail: number): void {
    const last = events.at(-1);
    if (!last) return;
    this.#tail = last.seq;
    const entries = events.map((event) => ({ event, bytes: this.#encode(event) }));
    const shared = new Map<string, Buffer | null>();
    for (const follower of this.#followers) {
      const { key, cursor, reader } = follower;
      follower.cursor = Math.max(cursor, last.seq);
      let bytes = cursor === tail ? shared.get(key) : undefined;
      if (bytes === undefined) {
        bytes = joined(entries, reader.filter, cursor);
        if (cursor === tail) shared.set(key, bytes);
      }
      if (bytes) reader.take(bytes);
    }
  }
}

function joined(entries: readonly Entry[], filter: EventFilter, after: number): Buffer | null {
  const wanted = entries.filter(({ event }) => event.seq > after && matches(filter, event));
  if (wanted.length === 0) return null;
  return wanted.length === 1 ? (wanted[0] as Entry).bytes : Buffer.concat(wanted.map(({ bytes }) => bytes));
}
