import type { ServerResponse } from 'node:http';
import { SandboxerError } from '../../contract/errors/errors.ts';
import type { Control } from '../../control/control.ts';
import { toCloudEvent } from '../../core/events/event.ts';
import type { Log } from '../../core/ports/log.ts';
import { silentLog } from '../../core/ports/log.ts';
import type { Caller } from '../../core/tenancy/caller.ts';
import { BufferBudget } from '../bounds/buffer-budget.ts';
import { StreamSlots } from '../bounds/stream-slots.ts';
import type { Exchange } from '../exchange/exchange.ts';
import { KeyEnds } from '../keys/key-ends.ts';
import { Presenter } from '../present/presenter.ts';
import { AuditBatch } from './audit-batch.ts';
import { EventFeed } from './event-feed.ts';
import type { HttpLimits, HttpOptions } from './http-options.ts';
import { DEFAULT_HTTP_LIMITS } from './http-options.ts';

/** The services that the routes share. */
export class HttpServices {
  readonly options: HttpOptions;
  readonly limits: HttpLimits;
  readonly control: Control;
  readonly log: Log;
  readonly present: Presenter;
  readonly slots: StreamSlots;
  readonly buffers: BufferBudget;
  readonly keyEnds: KeyEnds;
  readonly feed: EventFeed;
  readonly audit: AuditBatch;
  /** The `source` of our events. */
  readonly eventSource: string;
  /** Requests that wait or stream: each is notified when the server stops. */
  readonly open = new Set<Exchange>();
  #stopping = false;

  constructor(options: HttpOptions) {
    const { control } = options;
    this.options = options;
    this.limits = { ...DEFAULT_HTTP_LIMITS, ...options.limits };
    this.control = control;
    this.log = options.log === false ? silentLog : options.log;
    this.present = new Presenter(options.publicUrl ?? '');
    this.audit = new AuditBatch(control.store, this.log);
    this.keyEnds = new KeyEnds(control);
    this.buffers = new BufferBudget({
      perKey: this.limits.bufferedPerKey,
      total: this.limits.bufferedBytes,
    });
    this.slots = new StreamSlots(this.limits.streamsPerKey);
    this.eventSource = `urn:sand-boxer:${control.owner}`;
    this.feed = new EventFeed(control.store, this.log, (event) =>
      Buffer.from(
        `id: ${event.seq}\nevent: ${event.type}\ndata: ${JSON.stringify(toCloudEvent(event, this.eventSource))}\n\n`,
      ),
    );
  }

  requireRunning(): void {
    if (!this.#stopping) return;
    throw new SandboxerError('SBX_UNAVAILABLE', 'The server is stopping.', { retryAfterSeconds: 1 });
  }

  /** Takes from the caller's rate limit. The remaining rate goes into the headers of the answer, also of a refusal. */
  limitRate(caller: Caller, response?: ServerResponse): void {
    const { rates } = this.options;
    if (!rates) return;
    try {
      rates.take(caller);
    } finally {
      for (const [name, value] of Object.entries(rates.headersOf(caller))) response?.setHeader(name, value);
    }
  }

  stop(): void {
    this.#stopping = true;
    for (const exchange of this.open) exchange.stop();
  }
}
