import type { CapabilityEntry } from '../contract/capability-entry.ts';
import type { CallOptions, Transport } from './transport.ts';

export interface RegistryReport {
  readonly valid: boolean;
  readonly problems: readonly { readonly file: string; readonly problem: string }[];
}

export class Registry {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** What this installation offers, for a registry to index. */
  export(options: CallOptions = {}): Promise<CapabilityEntry> {
    return this.#transport.json({ ...options, method: 'GET', path: '/v1/registry' });
  }

  /** Checks a price list. Nothing is stored. */
  validate(file: string, text: string, options: CallOptions = {}): Promise<RegistryReport> {
    return this.#transport.json({
      ...options,
      method: 'POST',
      path: '/v1/registry/validate',
      json: { file, text },
    });
  }
}
