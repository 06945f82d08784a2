import type { Consumer } from '../../contract/sandboxes/sandbox.ts';
import { auditDraft } from '../../control/requests/audit.ts';
import type { Caller } from '../../core/tenancy/caller.ts';
import { ClientGone } from '../exchange/exchange.ts';
import { problemOf } from '../present/problem-of.ts';
import type { RouteDefinition } from '../route/route.ts';
import type { HttpServices } from '../services/http-services.ts';

/** Changes under these scopes, and these refusals, are on record before they are answered. */
const ADMIN_SCOPES: ReadonlySet<string> = new Set(['keys', 'credits', 'profiles', 'webhooks', 'server']);
const REFUSALS: ReadonlySet<string> = new Set(['SBX_FORBIDDEN', 'SBX_ELEVATION_REFUSED']);
const MADE = ['sandbox_id', 'snapshot_id', 'key_id', 'webhook_id', 'upload_id'] as const;

function madeBy(answer: unknown): string | null {
  const body = (answer as { body?: Record<string, unknown> } | undefined)?.body;
  const id = MADE.map((name) => body?.[name]).find((value) => typeof value === 'string');
  return (id as string | undefined) ?? null;
}

/** Writes the audit record of one request: of every call that changes something, by a known caller. */
export class RequestAudit {
  readonly #services: HttpServices;
  readonly #definition: RouteDefinition;
  readonly #requestId: string;
  readonly #changes: boolean;
  #caller: Caller | null = null;

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
    const { operationId: action } = this.#definition;
    const { audit } = this.#services;
    const trail = {
      requestId: this.#requestId,
      action,
      target: '',
      made: null,
      consumer: {},
      written: false,
      writeEarlier: () => audit.writeWaiting(),
    };
    this.#caller = { ...caller, trail };
    return this.#caller;
  }

  /** Sets the caller as it acts in another workspace than its own. */
  narrow(caller: Caller): void {
    if (this.#caller) this.#caller = caller;
  }

  saw(params: unknown, body: unknown): void {
    const trail = this.#caller?.trail;
    if (!trail) return;
    trail.target = Object.values((params as Record<string, unknown> | undefined) ?? {}).join('/');
    const { consumer } = (body ?? {}) as { consumer?: Consumer };
    if (consumer) trail.consumer = consumer;
  }

  /** Resolves when the record outlasts this process: the answer is given afterwards. */
  async done(answer?: unknown): Promise<void> {
    const trail = this.#caller?.trail;
    if (!trail || trail.written) return;
    trail.made ??= madeBy(answer);
    await this.#record('ok', this.#reads() ? 'later' : 'now');
  }

  /** Rejects never: the caller is owed the answer in any case. */
  async failed(error: unknown): Promise<void> {
    if (error instanceof ClientGone) {
      if (this.#caller?.trail?.written !== true) await this.#record('client_gone', 'later');
      return;
    }
    const { code } = problemOf(error);
    if (code === 'SBX_RATE_LIMITED') return;
    await this.#record(
      code,
      ADMIN_SCOPES.has(this.#definition.scope) || REFUSALS.has(code) ? 'durable' : 'later',
    );
  }

  /** A question that is too long for an address. */
  #reads(): boolean {
    const { scope, connect } = this.#definition;
    return scope === 'read' && connect === undefined;
  }

  async #record(outcome: string, when: 'later' | 'now' | 'durable'): Promise<void> {
    const caller = this.#caller;
    if (!caller?.trail) return;
    const { action, target, made } = caller.trail;
    caller.trail.written = true;
    const { control, audit, log } = this.#services;
    const named = target === '' ? (made ?? '') : target;
    const details = made !== null && made !== named ? { made } : {};
    const draft = auditDraft(control, caller, { action, target: named, details }, outcome);
    if (when === 'later') return audit.add(draft);
    const isDurable = when === 'durable' || ADMIN_SCOPES.has(this.#definition.scope);
    await audit.append(draft, isDurable).catch((error: unknown) => {
      log.error({ err: error, request_id: this.#requestId }, 'a record of the audit log is late');
      audit.add(draft);
    });
  }
}
