import type { ControlPorts } from '../../control/ports/control-ports.ts';
import type { WebhookPort, WebhookRecord } from '../../core/events/webhook.ts';
import { webhookSinkId } from '../../core/events/webhook.ts';
import type { SecretBox } from '../../core/ports/secret-box.ts';
import { checkTarget } from '../../sinks/target-policy.ts';
import { newWebhookSecret } from '../../sinks/webhook-signature.ts';
import { WebhookSink } from '../../sinks/webhook-sink.ts';
import { WebhookDeliveries } from '../../workers/webhook-deliveries.ts';
import type { Config } from '../config/config.ts';
import { packageVersion } from '../process/shipped-files.ts';
import { systemClock } from './system-clock.ts';

const CONCURRENCY = 8;

export function eventSourceOf(owner: string): string {
  return `urn:sand-boxer:${owner}`;
}

export function userAgent(): string {
  return `sand-boxer/${packageVersion()}`;
}

/** Webhooks for the control plane, and their deliveries once these are attached. */
export class Webhooks implements WebhookPort {
  readonly disableAfter: number;
  readonly mostPerWorkspace: number;
  readonly #config: Config['webhooks'];
  readonly #box: SecretBox;
  readonly #source: string;
  #deliveries: WebhookDeliveries | null = null;

  constructor(config: Config['webhooks'], box: SecretBox, owner: string) {
    this.disableAfter = config.disable_after;
    this.mostPerWorkspace = config.per_workspace;
    this.#config = config;
    this.#box = box;
    this.#source = eventSourceOf(owner);
  }

  async start(deps: ControlPorts): Promise<void> {
    this.#deliveries = new WebhookDeliveries(deps, (webhook) => this.#sinkFor(webhook));
    await this.#deliveries.start();
  }

  async stop(): Promise<void> {
    await this.#deliveries?.stop();
  }

  checkUrl(url: string): void {
    checkTarget(url, this.#policy);
  }

  newSecret(): string {
    return newWebhookSecret();
  }

  seal(webhookId: string, secret: string): string {
    return this.#box.seal(secret, webhookSinkId(webhookId));
  }

  async send(...[webhook, event, signal]: Parameters<WebhookPort['send']>): Promise<void> {
    const sink = this.#sinkFor(webhook);
    try {
      await sink.send(event, signal);
    } finally {
      sink.close();
    }
  }

  async changed(): Promise<void> {
    await this.#deliveries?.refresh();
  }

  wake(webhookId: string): void {
    this.#deliveries?.wake(webhookId);
  }

  get #policy() {
    return { allowPrivate: this.#config.allow_private, allowHttp: this.#config.allow_http };
  }

  #sinkFor(webhook: WebhookRecord): WebhookSink {
    return new WebhookSink(webhook, {
      box: this.#box,
      clock: systemClock,
      policy: this.#policy,
      source: this.#source,
      userAgent: userAgent(),
      maxTries: this.#config.max_tries,
      timeoutMs: this.#config.timeout,
      longestRetryMs: this.#config.longest_retry,
      concurrency: CONCURRENCY,
    });
  }
}
