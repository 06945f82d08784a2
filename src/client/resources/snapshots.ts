import type { IncomingMessage } from 'node:http';
import type { RestoreRequest, Snapshot } from '../../contract/assets/snapshot.ts';
import type { Sandbox } from '../../contract/sandboxes/sandbox.ts';
import { freshKey } from '../transport/fresh-key.ts';
import { PagedList } from '../transport/paged-list.ts';
import { pathOf, queryOf } from '../transport/path-of.ts';
import type { CallOptions, Transport } from '../transport/transport.ts';
import type { CreateOptions } from './sandboxes.ts';
import { waitingCall } from './sandboxes.ts';
import type { InputOf } from './schema-types.ts';

export interface SnapshotFilter {
  readonly sandbox?: string | undefined;
  readonly limit?: number | undefined;
}

/** A snapshot may be large. */
const TRANSFER_MS = 6 * 3_600_000;
const FILE_MEDIA_TYPE = 'application/octet-stream';

export interface ImportOptions extends CallOptions {
  /** Profile that a restore uses, instead of the one in the file. */
  readonly profile?: string | undefined;
  readonly name?: string | undefined;
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

  /** Makes a new sandbox from a snapshot. */
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

  /** Exports all of a snapshot as one file, for `import` here or elsewhere. */
  export(id: string, options: CallOptions = {}): Promise<IncomingMessage> {
    const path = pathOf('snapshots', id, 'export');
    return this.#transport.open({ ...options, method: 'GET', path, accept: FILE_MEDIA_TYPE });
  }

  /** Imports a snapshot from a file that `export` wrote. */
  import(file: AsyncIterable<Uint8Array>, options: ImportOptions = {}): Promise<Snapshot> {
    const { profile, name, ...call } = options;
    return this.#transport.json({
      timeoutMs: TRANSFER_MS,
      ...call,
      method: 'POST',
      path: pathOf('snapshots', 'import') + queryOf({ profile, name }),
      body: file,
      contentType: FILE_MEDIA_TYPE,
    });
  }

  rename(id: string, name: string | null, options: CallOptions = {}): Promise<Snapshot> {
    const path = pathOf('snapshots', id);
    return this.#transport.json({ ...options, method: 'PATCH', path, json: { name } });
  }

  /** Deletes a snapshot. A repetition is harmless. */
  delete(id: string, options: CallOptions = {}): Promise<Snapshot> {
    return this.#transport.json({ ...options, method: 'DELETE', path: pathOf('snapshots', id) });
  }
}
