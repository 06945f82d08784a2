import type { EventRecord } from '../core/events/event.ts';
import type { EventSink } from '../core/events/event-sink.ts';
import { isoTime } from '../core/ports/clock.ts';
import type { HubOptions } from './hub-sink.ts';
import { HubSink } from './hub-sink.ts';

export const STATE_HUB_SINK = 'state-hub';

/** The event as the hub takes it; `docs/integrations/state-hub.md` explains each field. */
interface ProgressEvent {
  readonly event_id: string;
  readonly event_type: string;
  readonly occurred_at: string;
  readonly author: string;
  readonly summary: string;
  /** The caller that caused the event: the key of the request, or `atm` for what sand-boxer does by itself. */
  readonly actor: string;
  /** The party that the consumer acts for, as it said; `null` where it did not. */
  readonly consumer_actor: string | null;
  readonly harness: string | null;
  readonly session_id: string | null;
  readonly run_id: string | null;
  readonly job_id: string | null;
  readonly agent_id: string | null;
  readonly detail: Readonly<Record<string, unknown>>;
}

function progressEvent(event: EventRecord, source: string): ProgressEvent {
  const { consumer } = event;
  return {
    event_id: event.id,
    event_type: event.type,
    occurred_at: isoTime(event.at),
    author: source,
    summary: summaryOf(event),
    actor: event.actor,
    consumer_actor: consumer.actor ?? null,
    harness: consumer.harness ?? null,
    session_id: consumer.session_id ?? null,
    run_id: consumer.run_id ?? null,
    job_id: consumer.job_id ?? null,
    agent_id: consumer.agent_id ?? null,
    detail: {
      workspace_id: event.workspaceId,
      subject: event.subject,
      sequence: event.subjectSeq,
      sandbox_id: event.sandboxId,
      generation: event.generation,
      state: event.state,
      previous_state: event.previousState,
      ...event.details,
    },
  };
}

function summaryOf({ type, sandboxId, subject, state, previousState }: EventRecord): string {
  if (sandboxId === null) return `${type} (${subject})`;
  const moved = state !== null && state !== previousState && type === `sandbox.${state}`;
  return moved ? `Sandbox ${sandboxId} is ${state}.` : `Sandbox ${sandboxId}: ${type}.`;
}

/** Tells the State Hub of every transition. */
export function stateHubSink(options: HubOptions): EventSink {
  return new HubSink(options, {
    id: STATE_HUB_SINK,
    accepts: ({ type }) => type.startsWith('sandbox.') || type.startsWith('snapshot.'),
    body: (event) => progressEvent(event, options.source),
  });
}
