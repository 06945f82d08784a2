/** The position of a sink in the outbox. Events at or below the cursor are delivered or parked. */
export interface SinkCursor {
  readonly sinkId: string;
  readonly cursor: number;
}

/** An event that a sink did not take yet. Later events of the same subject wait behind it. */
export interface ParkedDelivery {
  readonly sinkId: string;
  readonly seq: number;
  readonly subject: string;
  readonly tries: number;
  /** When the delivery is tried again; of a dead one, when it was given up. */
  readonly nextAt: number;
  readonly lastError: string;
  /** Given up: visible, replayable, and no longer in the way of others. */
  readonly dead: boolean;
}

/** A sink as the store knows it. */
export interface SinkState extends SinkCursor {
  /** Whether the sink is served: if so, events that it has not read are kept. */
  readonly active: boolean;
  /** When the sink last took an event. */
  readonly takenAt: number | null;
}

export interface ParkedQuery {
  readonly sinkId: string;
  readonly dead?: boolean;
  readonly after: number;
  readonly limit: number;
}

export interface ParkedCounts {
  readonly waiting: number;
  readonly dead: number;
  /** Dead ones that were given up after `since`. */
  readonly deadSince: number;
  /** The error of the delivery that failed most often; `null` when none failed. */
  readonly lastError: string | null;
}

export interface OutboxStore {
  cursor(sinkId: string): Promise<number | null>;
  /** A new sink is active. */
  setCursor(cursor: SinkCursor): Promise<void>;
  sink(sinkId: string): Promise<SinkState | null>;
  /** Lists all sinks, by id. */
  sinks(): Promise<readonly SinkState[]>;
  setActive(sinkId: string, active: boolean): Promise<void>;
  setTaken(sinkId: string, at: number): Promise<void>;
  removeSink(sinkId: string): Promise<void>;
  /** Returns the lowest cursor of the active sinks. */
  minCursor(): Promise<number | null>;
  parked(sinkId: string): Promise<readonly ParkedDelivery[]>;
  /** The parked ones that are not dead, in order. */
  waiting(sinkId: string): Promise<readonly ParkedDelivery[]>;
  parkedPage(query: ParkedQuery): Promise<readonly ParkedDelivery[]>;
  parkedCounts(sinkId: string, since: number): Promise<ParkedCounts>;
  /** Removes dead deliveries that were given up before `before`. */
  pruneDead(before: number, limit: number): Promise<number>;
  park(delivery: ParkedDelivery): Promise<void>;
  unpark(sinkId: string, seq: number): Promise<void>;
}
