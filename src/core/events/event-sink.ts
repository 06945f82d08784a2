import type { EventRecord } from './event.ts';

/** Somebody who is told of events: at least once each, in order per subject. */
export interface EventSink {
  readonly id: string;
  /** Tries after which an event is set aside as dead; `null` never gives up. */
  readonly maxTries: number | null;
  /** The part of the log that `accepts` chooses from; everything when left out. */
  readonly filter?: { readonly workspaceId: string | null; readonly types?: readonly string[] };
  /** Subjects that are told at the same time; events of one subject are told one after the other. */
  readonly concurrency?: number;
  /** The longest pause between tries, when it is not the server's own. */
  readonly longestRetryMs?: number;
  accepts(event: EventRecord): boolean;
  /** Rejects when it was not taken; it is then sent again. */
  deliver(event: EventRecord, signal: AbortSignal): Promise<void>;
  /** Nothing will be delivered any more. */
  close?(): void;
}

/** A receiver that the configuration names, or would. */
export interface ConfiguredSink {
  readonly id: string;
  readonly kind: 'state-hub' | 'fin-hub' | 'other';
  /** Without credentials; `null` when it is not configured. */
  readonly endpoint: string | null;
  readonly configured: boolean;
}

/** Instead of any other error: the receiver will never take anything again. */
export class SinkGone extends Error {
  override readonly name = 'SinkGone';
}
