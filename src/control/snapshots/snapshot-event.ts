import type { EventType } from '../../contract/events/event.ts';
import type { Actor } from '../../contract/values/state.ts';
import type { SnapshotRecord } from '../../core/assets/snapshot.ts';
import type { EventDraft } from '../../core/events/event.ts';
import type { ControlPorts } from '../ports/control-ports.ts';

interface SnapshotChange {
  readonly type: EventType;
  readonly actor: Actor;
  readonly now: number;
  readonly details?: Record<string, unknown>;
}

/** `snapshot.eventSeq` is the number of this very event. */
export function snapshotEvent(
  deps: ControlPorts,
  snapshot: SnapshotRecord,
  { type, actor, now, details = {} }: SnapshotChange,
): EventDraft {
  return {
    id: deps.ids.next('evt'),
    at: now,
    type,
    workspaceId: snapshot.workspaceId,
    subject: `snapshot:${snapshot.id}`,
    subjectSeq: snapshot.eventSeq,
    sandboxUid: snapshot.sandboxUid,
    sandboxId: snapshot.sandboxId,
    generation: snapshot.generation,
    state: null,
    previousState: null,
    actor,
    consumer: snapshot.consumer,
    details: { snapshot_id: snapshot.id, name: snapshot.name, ...details },
  };
}
