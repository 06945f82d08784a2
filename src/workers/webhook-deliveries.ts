import { deliverEvents } from '../control/events/deliver-events.ts';
import { judgeWebhook } from '../control/events/judge-webhook.ts';
import type { ControlPorts } from '../control/ports/control-ports.ts';
import type { EventSink } from '../core/events/event-sink.ts';
import type { WebhookRecord } from '../core/events/webhook.ts';
import { Loop } from './loop.ts';

interface Delivery {
  readonly version: number;
  readonly workspaceId: string;
  readonly sink: EventSink;
  readonly loop: Loop;
}

const TAIL_BATCH = 1_000;
const BREATH_MS = 100;
/** Other processes may have changed the webhooks, and cursors that pass what is not for them are written in time. */
const LOOK_AGAIN_MS = 60_000;

/**
 * Keeps a loop per enabled webhook; loops start and stop as webhooks come and go. The tail of the log is read once for all of
 * them: only the webhooks that it has events for are woken.
 */
export class WebhookDeliveries {
  readonly #deps: ControlPorts;
  readonly #sinkFor: (webhook: WebhookRecord) => EventSink;
  readonly #running = new Map<string, Delivery>();
  readonly #tailLoop: Loop;
  #tail = 0;
  #unsubscribe: (() => void) | null = null;
  #refreshing: Promise<void> = Promise.resolve();
  #lookAgainAt = 0;
  #stopped = false;

  constructor(deps: ControlPorts, sinkFor: (webhook: WebhookRecord) => EventSink) {
    this.#deps = deps;
    this.#sinkFor = sinkFor;
    this.#tailLoop = new Loop('webhooks', deps, () => this.#followTail());
  }

  async start(): Promise<void> {
    const { store } = this.#deps;
    this.#unsubscribe = store.onCommit(({ lastSeq }) => {
      if (lastSeq > this.#tail && this.#running.size > 0) this.#tailLoop.wakeBy();
    });
    await this.refresh();
    this.#tailLoop.start();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#unsubscribe?.();
    await this.#refreshing;
    await Promise.all([this.#tailLoop.stop(), ...[...this.#running.keys()].map((id) => this.#end(id))]);
  }

  /** Resolves when the loops are those of the stored webhooks. */
  refresh(): Promise<void> {
    this.#refreshing = this.#refreshing.catch(() => {}).then(() => this.#align());
    return this.#refreshing;
  }

  wake(webhookId: string): void {
    this.#running.get(webhookId)?.loop.wakeBy();
  }

  async #align(): Promise<void> {
    if (this.#stopped) return;
    const stored = await this.#deps.store.read('webhooks', (tx) => tx.webhooks.list(null));
    const wanted = new Map(stored.filter(({ disabled }) => disabled === null).map((row) => [row.id, row]));
    const ending = [...this.#running].filter(([id, { version }]) => wanted.get(id)?.version !== version);
    await Promise.all(ending.map(([id]) => this.#end(id)));
    for (const [id, webhook] of wanted) if (!this.#running.has(id)) this.#begin(webhook);
  }

  #begin(webhook: WebhookRecord): void {
    const { id, version, workspaceId } = webhook;
    const sink = this.#sinkFor(webhook);
    const loop = new Loop(`deliver ${sink.id}`, this.#deps, (signal) => this.#round(id, sink, signal));
    this.#running.set(id, { version, workspaceId, sink, loop });
    loop.start();
  }

  async #end(id: string): Promise<void> {
    const delivery = this.#running.get(id);
    this.#running.delete(id);
    await delivery?.loop.stop();
    delivery?.sink.close?.();
  }

  async #round(id: string, sink: EventSink, signal: AbortSignal): Promise<number> {
    const { clock } = this.#deps;
    const { more, retryAt, failed, gaveUp, gone } = await deliverEvents(this.#deps, sink, signal);
    if ((gaveUp || gone !== null) && (await judgeWebhook(this.#deps, id, gone))) {
      // `refresh` stops this very loop, so it is not awaited here.
      void this.refresh().catch((error) =>
        this.#deps.log.warn({ err: error }, 'webhooks were not refreshed'),
      );
    }
    if (failed) await clock.sleep(BREATH_MS, signal).catch(() => {});
    return more ? clock.now() : Math.min(retryAt ?? Number.POSITIVE_INFINITY, clock.now() + LOOK_AGAIN_MS);
  }

  async #followTail(): Promise<number> {
    const { store, clock } = this.#deps;
    if (clock.now() >= this.#lookAgainAt) {
      this.#lookAgainAt = clock.now() + LOOK_AGAIN_MS;
      await this.refresh();
    }
    const after = this.#tail;
    const { events, lastSeq } = await store.read('webhooks', async (tx) => ({
      events: await tx.events.list({ workspaceId: null, after, limit: TAIL_BATCH }),
      lastSeq: await tx.events.lastSeq(),
    }));
    const complete = events.length < TAIL_BATCH;
    this.#tail = complete ? Math.max(lastSeq, after) : (events.at(-1)?.seq ?? after);
    const workspaces = new Set(events.map(({ workspaceId }) => workspaceId));
    for (const { workspaceId, loop } of this.#running.values())
      if (workspaces.has(workspaceId)) loop.wakeBy();
    return complete ? this.#lookAgainAt : clock.now();
  }
}
