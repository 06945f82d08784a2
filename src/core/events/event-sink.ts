import type { EventRecord } from './event.ts';

/** A receiver of events. It gets each at least once, in order per subject. */
export interface EventSink {
  readonly id: string;
  /** Tries after which an event is set aside as dead; `null` never gives up. */
  readonly maxTries: number | null;
  /** The part of the log that `accepts` chooses from; everything when left out. */
  readonly filter?: { readonly workspaceId: string | null; readonly types?: readonly string[] };
  /** The number of subjects served at the same time; events of one subject are delivered one after the other. */
  readonly concurrency?: number;
  /** The longest pause between tries, when it is not the server's own. */
  readonly longestRetryMs?: number;
  accepts(event: EventRecord): boolean;
  /** Rejects when it was not taken; it is then sent again. */
  deliver(event: EventRecord, signal: AbortSignal): Promise<void>;
  /** Called when no more events will be delivered. */
  close?(): void;
}

/** A receiver that the configuration names, or would. */
export interface ConfiguredSink {
  readonly id: string;
  readonly kind: 'state-hub' | 'fin-hub' | 'other';
  /** The address without credentials; `null` when it is not configured. */
  readonly endpoint: string | null;
  readonly configured: boolean;
}

/** Thrown instead of any other error: the receiver will never take an event again. */
export class SinkGone extends Error {
  override readonly name = 'SinkGone';
}
