import type { Consumer } from '../contract/sandbox.ts';
import { auditDraft } from '../control/audit.ts';
import type { Caller } from '../core/caller.ts';
import { ClientGone } from './exchange.ts';
import type { HttpServices } from './http-services.ts';
import { problemOf } from './problem-of.ts';
import type { RouteDefinition } from './route.ts';

/** What these do, and what of it is refused, is on record before it is answered. */
const ADMIN_SCOPES: ReadonlySet<string> = new Set(['keys', 'credits', 'profiles', 'webhooks', 'server']);
const REFUSALS: ReadonlySet<string> = new Set(['SBX_FORBIDDEN', 'SBX_ELEVATION_REFUSED']);
const MADE = ['sandbox_id', 'snapshot_id', 'key_id', 'webhook_id', 'upload_id'] as const;

function madeBy(answer: unknown): string | null {
  const body = (answer as { body?: Record<string, unknown> } | undefined)?.body;
  const id = MADE.map((name) => body?.[name]).find((value) => typeof value === 'string');
  return (id as string | undefined) ?? null;
}

/** One request's way into the audit log: every call that changes something, by a caller who is known. */
export class RequestAudit {
  readonly #services: HttpServices;
  readonly #definition: RouteDefinition;
  readonly #requestId: string;
  readonly #changes: boolean;
  #caller: Caller | null = null;
  #target = '';

  constructor(services: HttpServices, definition: RouteDefinition, requestId: string) {
    this.#services = services;
    this.#definition = definition;
    this.#requestId = requestId;
    const { method, connect } = definition;
    this.#changes = connect !== undefined || (method !== 'GET' && method !== 'HEAD');
  }

  /** The caller with the trail that use-cases write their own records by. */
  begin(caller: Caller): Caller {
    if (!this.#changes) return caller;
    this.#caller = { ...caller, trail: { requestId: this.#requestId, consumer: {}, written: false } };
    return this.#caller;
  }

  /** It acts in another workspace than its own. */
  narrow(caller: Caller): void {
    if (this.#caller) this.#caller = caller;
  }

  saw(params: unknown, body: unknown): void {
    if (!this.#caller?.trail) return;
    this.#target = Object.values((params as Record<string, unknown> | undefined) ?? {}).join('/');
    const { consumer } = (body ?? {}) as { consumer?: Consumer };
    if (consumer) this.#caller.trail.consumer = consumer;
  }

  async done(answer?: unknown): Promise<void> {
    const made = madeBy(answer);
    const details = this.#target !== '' && made !== null && made !== this.#target ? { made } : {};
    if (this.#target === '') this.#target = made ?? '';
    await this.#record('ok', this.#isAdmin(), details);
  }

  /** Rejects never: the caller is owed the answer in any case. */
  async failed(error: unknown): Promise<void> {
    if (error instanceof ClientGone) return this.#record('client_gone', false, {});
    const { code } = problemOf(error);
    if (code === 'SBX_RATE_LIMITED') return;
    await this.#record(code, this.#isAdmin() || REFUSALS.has(code), {});
  }

  #isAdmin(): boolean {
    return ADMIN_SCOPES.has(this.#definition.scope);
  }

  async #record(outcome: string, now: boolean, details: Record<string, unknown>): Promise<void> {
    const caller = this.#caller;
    if (!caller || caller.trail?.written) return;
    if (caller.trail) caller.trail.written = true;
    const { deps, audit, log } = this.#services;
    const subject = { action: this.#definition.operationId, target: this.#target, details };
    const draft = auditDraft(deps, caller, subject, outcome);
    if (!now) return audit.add(draft);
    await audit.append(draft).catch((error: unknown) => {
      log.error({ err: error, request_id: this.#requestId }, 'a record of the audit log is late');
      audit.add(draft);
    });
  }
}
