import type { Snapshot, SnapshotRequest } from '../../contract/assets/snapshot.ts';
import type { CloudEvent } from '../../contract/events/event.ts';
import type { IsolationReport } from '../../contract/extensions/isolation.ts';
import type { Meter } from '../../contract/money/money.ts';
import type { RouteExplanation } from '../../contract/routing/route.ts';
import type {
  CreateSandboxInput,
  ExtendedSandbox,
  ForkRequest,
  Sandbox,
} from '../../contract/sandboxes/sandbox.ts';
import type { SetupLog } from '../../contract/sandboxes/setup-log.ts';
import type { SandboxState } from '../../contract/values/state.ts';
import { freshKey } from '../transport/fresh-key.ts';
import { PagedList } from '../transport/paged-list.ts';
import { pathOf, queryOf } from '../transport/path-of.ts';
import type { CallOptions, Transport } from '../transport/transport.ts';
import type { InputOf, OutputOf } from './schema-types.ts';

export interface SandboxFilter {
  readonly state?: readonly SandboxState[] | undefined;
  readonly profile?: string | undefined;
  readonly extension?: string | undefined;
  readonly labels?: Readonly<Record<string, string>> | undefined;
  readonly harness?: string | undefined;
  /** Session, run, job or agent id of the consumer. */
  readonly externalId?: string | undefined;
  /** Number of items of one page. */
  readonly limit?: number | undefined;
}

export interface WaitOptions extends CallOptions {
  /** `none` answers at once with the state reached so far. */
  readonly wait?: 'ready' | 'none' | undefined;
  /** Time that the server waits before it answers with the state reached so far. */
  readonly waitSeconds?: number | undefined;
}

export interface KeyedOptions extends CallOptions {
  /** Idempotency key; a fresh one when left out, so that a create may always be repeated. */
  readonly idempotencyKey?: string | undefined;
}

export interface CreateOptions extends WaitOptions, KeyedOptions {}

export interface DestroyOptions extends CallOptions {
  readonly wait?: 'destroyed' | 'none' | undefined;
  readonly waitSeconds?: number | undefined;
}

export type SnapshotInput = InputOf<typeof SnapshotRequest>;
export type ForkInput = InputOf<typeof ForkRequest>;
export type Explanation = OutputOf<typeof RouteExplanation>;
export interface Usage {
  readonly items: readonly Meter[];
}

const LONGEST_WAIT_MS = 20 * 60_000;
const ANSWER_MARGIN_MS = 30_000;

/** Returns options whose time limit covers the waiting time in the server. */
export function waitingCall<T extends CallOptions & { readonly waitSeconds?: number | undefined }>(
  options: T,
): CallOptions {
  const { waitSeconds } = options;
  const patience = waitSeconds === undefined ? LONGEST_WAIT_MS : waitSeconds * 1000 + ANSWER_MARGIN_MS;
  return { signal: options.signal, timeoutMs: options.timeoutMs ?? patience };
}

function waitQuery(options: {
  readonly wait?: string | undefined;
  readonly waitSeconds?: number | undefined;
}) {
  return queryOf({ wait: options.wait, timeout: options.waitSeconds });
}

interface SandboxVerb {
  readonly id: string;
  readonly verb: string;
  readonly json?: unknown;
}

export class Sandboxes {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Creates a sandbox. Answers when it is ready, unless `wait` says otherwise. */
  create(request: CreateSandboxInput = {}, options: CreateOptions = {}): Promise<Sandbox> {
    return this.#transport.json({
      ...waitingCall(options),
      method: 'POST',
      path: `/v1/sandboxes${waitQuery(options)}`,
      json: request,
      idempotencyKey: options.idempotencyKey ?? freshKey(),
    });
  }

  get(id: string, options: CallOptions = {}): Promise<Sandbox> {
    return this.#transport.json({ ...options, method: 'GET', path: pathOf('sandboxes', id) });
  }

  list(filter: SandboxFilter = {}, options: CallOptions = {}): PagedList<Sandbox> {
    const { labels, externalId, ...rest } = filter;
    const label = Object.entries(labels ?? {}).map(([name, value]) => `${name}=${value}`);
    const query = { ...rest, label, external_id: externalId };
    return new PagedList(this.#transport, '/v1/sandboxes', query, options);
  }

  /** Destroys a sandbox. A repetition is harmless. */
  destroy(id: string, options: DestroyOptions = {}): Promise<Sandbox> {
    const path = pathOf('sandboxes', id) + waitQuery(options);
    return this.#transport.json({ ...waitingCall(options), method: 'DELETE', path });
  }

  /**
   * Extends a sandbox. The new deadline is now + ttl, at most the end of the profile's longest life. `extended` holds the former
   * deadline, and whether that end cut the new one.
   */
  extend(id: string, ttl: string | number, options: CallOptions = {}): Promise<ExtendedSandbox> {
    return this.#post({ id, verb: 'extend', json: { ttl } }, options);
  }

  pause(id: string, options: CallOptions = {}): Promise<Sandbox> {
    return this.#post({ id, verb: 'pause' }, options);
  }

  resume(id: string, options: CallOptions = {}): Promise<Sandbox> {
    return this.#post({ id, verb: 'resume' }, options);
  }

  /** Makes a new generation of the same id, from its first recipe. */
  recreate(id: string, options: WaitOptions = {}): Promise<Sandbox> {
    return this.#post({ id, verb: 'recreate' }, options);
  }

  fork(id: string, request: ForkInput = {}, options: CreateOptions = {}): Promise<Sandbox> {
    return this.#post({ id, verb: 'fork', json: request }, options, options.idempotencyKey ?? freshKey());
  }

  snapshot(id: string, request: SnapshotInput = {}, options: KeyedOptions = {}): Promise<Snapshot> {
    const { idempotencyKey = freshKey(), ...rest } = options;
    return this.#post({ id, verb: 'snapshots', json: request }, rest, idempotencyKey);
  }

  /** Waits for a state. Answers when it is reached, or with the present state when the time is up. */
  wait(
    id: string,
    until: 'ready' | 'destroyed' | 'settled',
    options: CallOptions & { readonly waitSeconds?: number | undefined } = {},
  ): Promise<Sandbox> {
    const query = queryOf({ for: until, timeout: options.waitSeconds });
    const path = pathOf('sandboxes', id, 'wait') + query;
    return this.#transport.json({ ...waitingCall(options), method: 'GET', path });
  }

  /** Explains the route of a sandbox. */
  route(id: string, options: CallOptions = {}): Promise<Explanation> {
    return this.#transport.json({ ...options, method: 'GET', path: pathOf('sandboxes', id, 'route') });
  }

  /** Reads the instructions of a sandbox and the output of its setup commands; of a failed one, too. */
  setup(id: string, options: CallOptions = {}): Promise<SetupLog> {
    return this.#transport.json({ ...options, method: 'GET', path: pathOf('sandboxes', id, 'setup') });
  }

  /** Returns the isolation in force between a sandbox and its host, read from the kernel. */
  isolation(id: string, options: CallOptions = {}): Promise<IsolationReport> {
    return this.#transport.json({ ...options, method: 'GET', path: pathOf('sandboxes', id, 'isolation') });
  }

  usage(id: string, options: CallOptions = {}): Promise<Usage> {
    return this.#transport.json({ ...options, method: 'GET', path: pathOf('sandboxes', id, 'usage') });
  }

  events(id: string, options: CallOptions = {}): PagedList<CloudEvent> {
    return new PagedList(this.#transport, pathOf('sandboxes', id, 'events'), {}, options);
  }

  #post<T>({ id, verb, json }: SandboxVerb, options: WaitOptions, idempotencyKey?: string): Promise<T> {
    const path = pathOf('sandboxes', id, verb) + waitQuery(options);
    return this.#transport.json({ ...waitingCall(options), method: 'POST', path, json, idempotencyKey });
  }
}
