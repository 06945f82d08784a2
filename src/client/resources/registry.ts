import type { CapabilityEntry } from '../../contract/extensions/capability-entry.ts';
import type { CapabilityStatus } from '../../contract/extensions/federated-capability.ts';
import type { CallOptions, Transport } from '../transport/transport.ts';

export interface RegistryFile {
  readonly file: string;
  readonly text: string;
}

export interface RegistryReport {
  readonly valid: boolean;
  readonly files: number;
  readonly problems: readonly { readonly file: string; readonly problem: string }[];
}

export interface RegistryPublication {
  readonly capability: string;
  readonly status: CapabilityStatus;
  readonly target: string;
  readonly outcome: 'registered' | 'updated' | 'written';
  readonly files: number;
}

export class Registry {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Returns the offer of this installation, for a registry to index. */
  export(options: CallOptions = {}): Promise<CapabilityEntry> {
    return this.#transport.json({ ...options, method: 'GET', path: '/v1/registry' });
  }

  /** Checks files of a registry as a federation would, or the registry of the server. Nothing is stored. */
  validate(files?: readonly RegistryFile[], options: CallOptions = {}): Promise<RegistryReport> {
    return this.#transport.json({
      ...options,
      method: 'POST',
      path: '/v1/registry/validate',
      json: files === undefined ? {} : { files },
    });
  }

  /** Publishes the entry of the server to the federation that its configuration names. */
  publish(options: CallOptions = {}): Promise<RegistryPublication> {
    return this.#transport.json({ ...options, method: 'POST', path: '/v1/registry/publish' });
  }
}
