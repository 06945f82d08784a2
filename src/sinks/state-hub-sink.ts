import { readFile } from 'node:fs/promises';
import { isoTime } from '../core/clock.ts';
import type { EventRecord } from '../core/event.ts';
import type { EventSink } from '../core/event-sink.ts';
import { HttpPoster } from './http-poster.ts';

export const STATE_HUB_SINK = 'state-hub';

export interface StateHubOptions {
  readonly url: string;
  /** Read for every delivery, so that a new token is taken without a restart. */
  readonly tokenFile: string | null;
  readonly source: string;
  readonly userAgent: string;
  readonly timeoutMs: number;
}

const CONCURRENCY = 8;

/** What the hub is told; `docs/integrations/state-hub.md` explains each field. */
interface ProgressEvent {
  readonly event_id: string;
  readonly event_type: string;
  readonly occurred_at: string;
  readonly author: string;
  readonly summary: string;
  readonly actor: string;
  readonly harness: string | null;
  readonly session_id: string | null;
  readonly run_id: string | null;
  readonly job_id: string | null;
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
    harness: consumer.harness ?? null,
    session_id: consumer.session_id ?? null,
    run_id: consumer.run_id ?? null,
    job_id: consumer.job_id ?? null,
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

/** Tells the State Hub of every transition. It never gives up: a hub that is down is told later. */
export class StateHubSink implements EventSink {
  readonly id = STATE_HUB_SINK;
  readonly maxTries = null;
  readonly concurrency = CONCURRENCY;
  readonly #options: StateHubOptions;
  readonly #poster: HttpPoster;

  constructor(options: StateHubOptions) {
    this.#options = options;
    // The operator names the hub, so it may be anywhere.
    const policy = { allowPrivate: true, allowHttp: true };
    this.#poster = new HttpPoster(options.url, {
      policy,
      timeoutMs: options.timeoutMs,
      connections: CONCURRENCY,
    });
  }

  accepts({ type }: EventRecord): boolean {
    return type.startsWith('sandbox.') || type.startsWith('snapshot.');
  }

  async deliver(event: EventRecord, signal: AbortSignal): Promise<void> {
    const { source, userAgent } = this.#options;
    const headers = {
      'content-type': 'application/json',
      'user-agent': userAgent,
      'idempotency-key': event.id,
      ...(await this.#authorization()),
    };
    const status = await this.#poster.post(JSON.stringify(progressEvent(event, source)), headers, signal);
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
