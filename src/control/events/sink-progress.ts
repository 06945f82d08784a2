import type { WebhookRecord } from '../../core/events/webhook.ts';
import { webhookSinkId } from '../../core/events/webhook.ts';
import type { EventQuery } from '../../core/ports/store/event-store.ts';
import type { ParkedCounts, SinkState } from '../../core/ports/store/outbox-store.ts';
import type { Tx } from '../../core/ports/store/store.ts';

export interface SinkProgress {
  readonly sink: SinkState | null;
  /** Events after the cursor that are for it; counted up to `MOST_COUNTED`. */
  readonly lag: number;
  readonly counts: ParkedCounts;
}

const MOST_COUNTED = 1_000;

export async function sinkProgress(
  tx: Tx,
  sinkId: string,
  filter: Pick<EventQuery, 'workspaceId' | 'types'>,
  since = 0,
): Promise<SinkProgress> {
  const sink = await tx.outbox.sink(sinkId);
  const after = sink?.cursor ?? 0;
  const lag = sink === null ? 0 : (await tx.events.list({ ...filter, after, limit: MOST_COUNTED })).length;
  return { sink, lag, counts: await tx.outbox.parkedCounts(sinkId, Math.max(since, sink?.takenAt ?? 0)) };
}

function webhookFilter({ workspaceId, types }: WebhookRecord): Pick<EventQuery, 'workspaceId' | 'types'> {
  return { workspaceId, ...(types && { types }) };
}

export function webhookProgress(tx: Tx, webhook: WebhookRecord): Promise<SinkProgress> {
  return sinkProgress(tx, webhookSinkId(webhook.id), webhookFilter(webhook), webhook.enabledAt);
}
