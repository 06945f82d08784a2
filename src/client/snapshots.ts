import type { Sandbox } from '../contract/sandbox.ts';
import type { RestoreRequest, Snapshot } from '../contract/snapshot.ts';
import { freshKey } from './fresh-key.ts';
import { PagedList } from './paged-list.ts';
import { pathOf, queryOf } from './path-of.ts';
import type { CreateOptions } from './sandboxes.ts';
import { waitingCall } from './sandboxes.ts';
import type { InputOf } from './schema-types.ts';
import type { CallOptions, Transport } from './transport.ts';

export interface SnapshotFilter {
  readonly sandbox?: string | undefined;
  readonly limit?: number | undefined;
}

export type RestoreInput = InputOf<typeof RestoreRequest>;

export class Snapshots {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  list(filter: SnapshotFilter = {}, options: CallOptions = {}): PagedList<Snapshot> {
    const query = { sandbox_id: filter.sandbox, limit: filter.limit };
    return new PagedList(this.#transport, '/v1/snapshots', query, options);
  }

  get(id: string, options: CallOptions = {}): Promise<Snapshot> {
    return this.#transport.json({ ...options, method: 'GET', path: pathOf('snapshots', id) });
  }

  /** A new sandbox from it. */
  restore(id: string, request: RestoreInput = {}, options: CreateOptions = {}): Promise<Sandbox> {
    return this.#transport.json({
      ...waitingCall(options),
      method: 'POST',
      path:
        pathOf('snapshots', id, 'restore') + queryOf({ wait: options.wait, timeout: options.waitSeconds }),
      json: request,
      idempotencyKey: options.idempotencyKey ?? freshKey(),
    });
  }

  rename(id: string, name: string | null, options: CallOptions = {}): Promise<Snapshot> {
    const path = pathOf('snapshots', id);
    return this.#transport.json({ ...options, method: 'PATCH', path, json: { name } });
  }

  /** Repeating it is harmless. */
  delete(id: string, options: CallOptions = {}): Promise<Snapshot> {
    return this.#transport.json({ ...options, method: 'DELETE', path: pathOf('snapshots', id) });
  }
}
