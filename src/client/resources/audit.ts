import type { AuditEntry } from '../../contract/tenancy/audit.ts';
import { PagedList } from '../transport/paged-list.ts';
import type { CallOptions, Transport } from '../transport/transport.ts';

export interface AuditFilter {
  readonly keyId?: string | undefined;
  /** OperationId of the API. */
  readonly action?: string | undefined;
  readonly target?: string | undefined;
  readonly limit?: number | undefined;
}

/** Audit log of changes and their callers, newest first. */
export class Audit {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  list(filter: AuditFilter = {}, options: CallOptions = {}): PagedList<AuditEntry> {
    const { keyId, ...query } = filter;
    return new PagedList(this.#transport, '/v1/audit', { ...query, key_id: keyId }, options);
  }
}
