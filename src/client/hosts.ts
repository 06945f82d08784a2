import type { Host, HostSampleList, HostSpecInput, HostTelemetry } from '../contract/host.ts';
import { pathOf } from './path-of.ts';
import type { OutputOf } from './schema-types.ts';
import type { CallOptions, RequestSpec, Transport } from './transport.ts';

export class Hosts {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  list(options: CallOptions = {}): Promise<{ readonly items: readonly Host[] }> {
    return this.#transport.json({ ...options, method: 'GET', path: '/v1/hosts' });
  }

  /** Registers it, or changes how it is registered. */
  add({ id, ...registration }: HostSpecInput, options: CallOptions = {}): Promise<Host> {
    return this.#call('PUT', id, [], options, registration);
  }

  get(id: string, options: CallOptions = {}): Promise<Host> {
    return this.#call('GET', id, [], options);
  }

  remove(id: string, options: CallOptions = {}): Promise<void> {
    return this.#call('DELETE', id, [], options);
  }

  drain(id: string, options: CallOptions = {}): Promise<Host> {
    return this.#call('POST', id, ['drain'], options);
  }

  undrain(id: string, options: CallOptions = {}): Promise<Host> {
    return this.#call('POST', id, ['undrain'], options);
  }

  probe(id: string, options: CallOptions = {}): Promise<Host> {
    return this.#call('POST', id, ['probe'], options);
  }

  /** What it says of itself now; `local` is the machine of the server. */
  telemetry(id: string, options: CallOptions = {}): Promise<HostTelemetry> {
    return this.#call('GET', id, ['telemetry'], options);
  }

  /** The figures that were kept, newest first. */
  samples(id: string, options: CallOptions = {}): Promise<OutputOf<typeof HostSampleList>> {
    return this.#call('GET', id, ['samples'], options);
  }

  #call<T>(
    method: RequestSpec['method'],
    id: string,
    below: readonly string[],
    options: CallOptions,
    json?: unknown,
  ): Promise<T> {
    return this.#transport.json({ ...options, method, path: pathOf('hosts', id, ...below), json });
  }
}
