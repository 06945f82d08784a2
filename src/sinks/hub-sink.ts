import { readFile } from 'node:fs/promises';
import type { EventRecord } from '../core/events/event.ts';
import type { EventSink } from '../core/events/event-sink.ts';
import { HttpPoster } from './http-poster.ts';

export interface HubOptions {
  readonly url: string;
  /** Read for every delivery, so that a new token is taken without a restart. */
  readonly tokenFile: string | null;
  readonly source: string;
  readonly userAgent: string;
  readonly timeoutMs: number;
}

/** The events that one hub takes, and their form there. */
interface HubLanguage {
  readonly id: string;
  accepts(event: EventRecord): boolean;
  body(event: EventRecord): object;
}

const CONCURRENCY = 8;

/** Sends events to a hub that the operator named. Delivery never gives up: a hub that is down gets them later. */
export class HubSink implements EventSink {
  readonly id: string;
  readonly maxTries = null;
  readonly concurrency = CONCURRENCY;
  readonly #options: HubOptions;
  readonly #language: HubLanguage;
  readonly #poster: HttpPoster;

  constructor(options: HubOptions, language: HubLanguage) {
    this.id = language.id;
    this.#options = options;
    this.#language = language;
    // The operator names the hub, so it may be anywhere.
    const policy = { allowPrivate: true, allowHttp: true };
    this.#poster = new HttpPoster(options.url, {
      policy,
      timeoutMs: options.timeoutMs,
      connections: CONCURRENCY,
    });
  }

  accepts(event: EventRecord): boolean {
    return this.#language.accepts(event);
  }

  async deliver(event: EventRecord, signal: AbortSignal): Promise<void> {
    const headers = {
      'content-type': 'application/json',
      'user-agent': this.#options.userAgent,
      'idempotency-key': event.id,
      ...(await this.#authorization()),
    };
    const body = JSON.stringify(this.#language.body(event));
    const status = await this.#poster.post(body, headers, signal);
    if (status < 200 || status > 299) throw new Error(`The hub answered ${status}.`);
  }

  close(): void {
    this.#poster.close();
  }

  async #authorization(): Promise<Record<string, string>> {
    const { tokenFile } = this.#options;
    if (tokenFile === null) return {};
    const token = (await readFile(tokenFile, 'utf8').catch(() => '')).trim();
    if (token === '') throw new Error('The token file of the hub cannot be read, or is empty.');
    return { authorization: `Bearer ${token}` };
  }
}
