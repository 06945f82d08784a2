import type { CloudEvent, EventType } from '../../contract/events/event.ts';
import type { Consumer } from '../../contract/sandboxes/sandbox.ts';
import type { Actor, SandboxState } from '../../contract/values/state.ts';
import { isoTime } from '../ports/clock.ts';

/** An event before the store numbers it. Written in the transaction of the change that it reports, or not at all. */
export interface EventDraft {
  readonly id: string;
  readonly at: number;
  readonly type: EventType;
  readonly workspaceId: string;
  /** The subject: a sandbox uid, `snapshot:…`, `profile:…`, `workspace:…`. Orders within one subject hold. */
  readonly subject: string;
  readonly subjectSeq: number;
  readonly sandboxUid: string | null;
  readonly sandboxId: string | null;
  readonly generation: number | null;
  readonly state: SandboxState | null;
  readonly previousState: SandboxState | null;
  readonly actor: Actor;
  readonly consumer: Consumer;
  readonly details: Readonly<Record<string, unknown>>;
}

export interface EventRecord extends EventDraft {
  /** The number of the event: global, increasing in commit order, never reused. */
  readonly seq: number;
}

export function toCloudEvent(event: EventRecord, source: string): CloudEvent {
  return {
    specversion: '1.0',
    id: event.id,
    source,
    type: event.type,
    subject: event.subject,
    time: isoTime(event.at),
    datacontenttype: 'application/json',
    sequence: String(event.subjectSeq),
    data: {
      seq: event.seq,
      workspace_id: event.workspaceId,
      sandbox_id: event.sandboxId,
      generation: event.generation,
      state: event.state,
      previous_state: event.previousState,
      actor: event.actor,
      consumer: event.consumer,
      details: { ...event.details },
    },
  };
}
