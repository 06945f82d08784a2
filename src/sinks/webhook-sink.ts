import type { CloudEvent } from '../contract/events/event.ts';
import type { EventRecord } from '../core/events/event.ts';
import { toCloudEvent } from '../core/events/event.ts';
import type { EventSink } from '../core/events/event-sink.ts';
import { SinkGone } from '../core/events/event-sink.ts';
import type { WebhookRecord } from '../core/events/webhook.ts';
import { webhookSinkId } from '../core/events/webhook.ts';
import type { Clock } from '../core/ports/clock.ts';
import type { SecretBox } from '../core/ports/secret-box.ts';
import { HttpPoster } from './http-poster.ts';
import type { TargetPolicy } from './target-policy.ts';
import { signatureHeaders } from './webhook-signature.ts';

export interface WebhookSinkOptions {
  readonly box: SecretBox;
  readonly clock: Clock;
  readonly policy: TargetPolicy;
  /** The `source` of the events. */
  readonly source: string;
  readonly userAgent: string;
  readonly maxTries: number;
  readonly timeoutMs: number;
  readonly longestRetryMs: number;
  readonly concurrency: number;
}

const MEDIA_TYPE = 'application/cloudevents+json';
const GONE = 410;

/** Posts each event of a workspace, signed, to the address that the workspace named. */
export class WebhookSink implements EventSink {
  readonly id: string;
  readonly maxTries: number;
  readonly filter: { readonly workspaceId: string; readonly types?: readonly string[] };
  readonly concurrency: number;
  readonly longestRetryMs: number;
  readonly #webhook: WebhookRecord;
  readonly #options: WebhookSinkOptions;
  #poster: HttpPoster | null = null;

  constructor(webhook: WebhookRecord, options: WebhookSinkOptions) {
    const { workspaceId, types } = webhook;
    this.id = webhookSinkId(webhook.id);
    this.maxTries = options.maxTries;
    this.filter = { workspaceId, ...(types && { types }) };
    this.concurrency = options.concurrency;
    this.longestRetryMs = options.longestRetryMs;
    this.#webhook = webhook;
    this.#options = options;
  }

  accepts(event: EventRecord): boolean {
    const { workspaceId, types } = this.#webhook;
    return event.workspaceId === workspaceId && (types === null || types.includes(event.type));
  }

  deliver(event: EventRecord, signal: AbortSignal): Promise<void> {
    return this.send(toCloudEvent(event, this.#options.source), signal);
  }

  async send(event: CloudEvent, signal: AbortSignal): Promise<void> {
    const { clock, policy, timeoutMs, concurrency, userAgent } = this.#options;
    // The sender is made at the first use: a policy that has become stricter fails the delivery, not the start of the server.
    this.#poster ??= new HttpPoster(this.#webhook.url, { policy, timeoutMs, connections: concurrency });
    const body = JSON.stringify(event);
    const timestampSeconds = Math.floor(clock.now() / 1000);
    const signed = signatureHeaders({ id: event.id, timestampSeconds, body }, this.#secrets());
    const headers = { 'content-type': MEDIA_TYPE, 'user-agent': userAgent, ...signed };
    const status = await this.#poster.post(body, headers, signal);
    if (status === GONE) throw new SinkGone('The receiver answered 410: it is gone for good.');
    if (status < 200 || status > 299) throw new Error(`The receiver answered ${status}.`);
  }

  close(): void {
    this.#poster?.close();
  }

  #secrets(): string[] {
    const { sealedSecret, previousSecret } = this.#webhook;
    const { box, clock } = this.#options;
    const sealed = [sealedSecret];
    if (previousSecret && previousSecret.until > clock.now()) sealed.push(previousSecret.sealed);
    return sealed.map((text) => box.open(text, this.id));
  }
}
