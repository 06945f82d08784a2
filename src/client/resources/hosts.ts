import type {
  CanaryReport,
  Host,
  HostSampleList,
  HostSpecInput,
  HostTelemetry,
} from '../../contract/extensions/host.ts';
import { pathOf } from '../transport/path-of.ts';
import type { CallOptions, RequestSpec, Transport } from '../transport/transport.ts';
import type { OutputOf } from './schema-types.ts';

interface HostCall {
  readonly method: RequestSpec['method'];
  readonly id: string;
  readonly below: readonly string[];
}

export class Hosts {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  list(options: CallOptions = {}): Promise<{ readonly items: readonly Host[] }> {
    return this.#transport.json({ ...options, method: 'GET', path: '/v1/hosts' });
  }

  /** Registers a host, or changes how it is registered. */
  add({ id, ...registration }: HostSpecInput, options: CallOptions = {}): Promise<Host> {
    return this.#call({ method: 'PUT', id, below: [] }, options, registration);
  }

  get(id: string, options: CallOptions = {}): Promise<Host> {
    return this.#call({ method: 'GET', id, below: [] }, options);
  }

  remove(id: string, options: CallOptions = {}): Promise<void> {
    return this.#call({ method: 'DELETE', id, below: [] }, options);
  }

  drain(id: string, options: CallOptions = {}): Promise<Host> {
    return this.#call({ method: 'POST', id, below: ['drain'] }, options);
  }

  undrain(id: string, options: CallOptions = {}): Promise<Host> {
    return this.#call({ method: 'POST', id, below: ['undrain'] }, options);
  }

  probe(id: string, options: CallOptions = {}): Promise<Host> {
    return this.#call({ method: 'POST', id, below: ['probe'] }, options);
  }

  /** Returns the present facts of a host; `local` is the machine of the server. */
  telemetry(id: string, options: CallOptions = {}): Promise<HostTelemetry> {
    return this.#call({ method: 'GET', id, below: ['telemetry'] }, options);
  }

  /** Tries every backend of a host now, with a sandbox of no workspace. */
  canary(id: string, options: CallOptions = {}): Promise<CanaryReport> {
    return this.#call({ method: 'POST', id, below: ['canary'] }, options);
  }

  /** Returns the stored figures of its probes or canaries, newest first. */
  samples(
    id: string,
    { kind = 'probe', ...options }: CallOptions & { readonly kind?: 'probe' | 'canary' } = {},
  ): Promise<OutputOf<typeof HostSampleList>> {
    return this.#transport.json({
      ...options,
      method: 'GET',
      path: `${pathOf('hosts', id, 'samples')}?kind=${kind}`,
    });
  }

  #call<T>({ method, id, below }: HostCall, options: CallOptions, json?: unknown): Promise<T> {
    return this.#transport.json({ ...options, method, path: pathOf('hosts', id, ...below), json });
  }
}
