import type { EventRecord } from '../../core/events/event.ts';
import type { EventQuery } from '../../core/ports/store/event-store.ts';
import type { Caller } from '../../core/tenancy/caller.ts';
import { requireScope, visibleWorkspace } from '../../core/tenancy/caller.ts';
import type { Control } from '../control.ts';
import type { ControlPorts } from '../ports/control-ports.ts';
import { findSandbox } from '../requests/find-sandbox.ts';

export type EventFilter = Pick<EventQuery, 'workspaceId' | 'sandboxUid' | 'types'>;

/** Makes the filter for the part of the log that a caller asks for and may see. */
export async function eventFilter(
  control: Control,
  caller: Caller,
  wanted: { readonly sandboxId?: string | undefined; readonly types?: readonly string[] | undefined },
): Promise<EventFilter> {
  requireScope(caller, 'read');
  const { sandboxId, types } = wanted;
  const sandbox =
    sandboxId === undefined
      ? null
      : await control.store.read('events', (tx) => findSandbox(tx, caller, sandboxId));
  return {
    workspaceId: visibleWorkspace(caller),
    ...(sandbox && { sandboxUid: sandbox.uid }),
    ...(types && { types }),
  };
}

export type EventRange = Pick<EventQuery, 'after' | 'before' | 'limit'>;

/** Lists events after a number, oldest first; with `before`, newest first. */
export function listEvents(
  deps: ControlPorts,
  filter: EventFilter,
  range: EventRange,
): Promise<readonly EventRecord[]> {
  return deps.store.read('events', (tx) => tx.events.list({ ...filter, ...range }));
}

export function lastEventSeq(deps: ControlPorts): Promise<number> {
  return deps.store.read('events', (tx) => tx.events.lastSeq());
}
