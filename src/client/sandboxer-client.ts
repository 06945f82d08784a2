import type { ExecInput, ProcessInfo } from '../contract/sandboxes/exec.ts';
import type { ServerVersion } from '../contract/values/version.ts';
import { Audit } from './resources/audit.ts';
import { Credits } from './resources/credits.ts';
import { Events } from './resources/events.ts';
import { Extensions } from './resources/extensions.ts';
import { Files } from './resources/files.ts';
import { Hosts } from './resources/hosts.ts';
import { Images } from './resources/images.ts';
import { Keys } from './resources/keys.ts';
import { Ports } from './resources/ports.ts';
import { Processes } from './resources/processes.ts';
import { Profiles } from './resources/profiles.ts';
import { ProviderKeys } from './resources/provider-keys.ts';
import { Registry } from './resources/registry.ts';
import { Routes } from './resources/routes.ts';
import { Sandboxes } from './resources/sandboxes.ts';
import { Sinks } from './resources/sinks.ts';
import { Snapshots } from './resources/snapshots.ts';
import { Stacks } from './resources/stacks.ts';
import { Stale } from './resources/stale.ts';
import { Tenants } from './resources/tenants.ts';
import { Uploads } from './resources/uploads.ts';
import { Volumes } from './resources/volumes.ts';
import { Webhooks } from './resources/webhooks.ts';
import { ExecHandle } from './streams/exec-handle.ts';
import { FRAMES_MEDIA_TYPE } from './streams/frames.ts';
import type { InteractiveExec } from './streams/interactive-exec.ts';
import type { ClientOptions } from './transport/open-transport.ts';
import { openTransport } from './transport/open-transport.ts';
import { pathOf } from './transport/path-of.ts';
import type { CallOptions, RequestSpec, Transport } from './transport/transport.ts';

/** Client of one server. Objects are those of the API, as they are on the wire. */
export class SandboxerClient {
  readonly sandboxes: Sandboxes;
  readonly snapshots: Snapshots;
  readonly uploads: Uploads;
  readonly images: Images;
  readonly volumes: Volumes;
  readonly files: Files;
  readonly processes: Processes;
  readonly profiles: Profiles;
  readonly extensions: Extensions;
  readonly hosts: Hosts;
  readonly stacks: Stacks;
  readonly stale: Stale;
  readonly routes: Routes;
  readonly registry: Registry;
  readonly credits: Credits;
  readonly events: Events;
  readonly keys: Keys;
  readonly ports: Ports;
  readonly providerKeys: ProviderKeys;
  readonly webhooks: Webhooks;
  readonly sinks: Sinks;
  readonly tenants: Tenants;
  readonly audit: Audit;
  readonly #transport: Transport;

  constructor(options: ClientOptions = {}) {
    const transport = openTransport(options);
    this.#transport = transport;
    this.sandboxes = new Sandboxes(transport);
    this.snapshots = new Snapshots(transport);
    this.uploads = new Uploads(transport);
    this.images = new Images(transport);
    this.volumes = new Volumes(transport);
    this.files = new Files(transport);
    this.processes = new Processes(transport);
    this.profiles = new Profiles(transport);
    this.extensions = new Extensions(transport);
    this.hosts = new Hosts(transport);
    this.stacks = new Stacks(transport);
    this.stale = new Stale(transport);
    this.routes = new Routes(transport);
    this.registry = new Registry(transport);
    this.credits = new Credits(transport);
    this.events = new Events(transport);
    this.keys = new Keys(transport);
    this.ports = new Ports(transport);
    this.providerKeys = new ProviderKeys(transport);
    this.webhooks = new Webhooks(transport);
    this.sinks = new Sinks(transport);
    this.tenants = new Tenants(transport);
    this.audit = new Audit(transport);
  }

  /** Address of the server. */
  get address(): string {
    return this.#transport.address.text;
  }

  /** Runs a program. The output comes as raw bytes; a slow reader slows the program down. */
  exec(sandboxId: string, request: ExecInput, options: CallOptions = {}): ExecHandle {
    const { signal, timeoutMs } = options;
    return new ExecHandle({
      address: this.#transport.address.text,
      open: (detached) =>
        this.#transport.open({
          method: 'POST',
          path: pathOf('sandboxes', sandboxId, 'exec'),
          accept: FRAMES_MEDIA_TYPE,
          json: request,
          timeoutMs,
          signal: signal ? AbortSignal.any([signal, detached]) : detached,
        }),
      kill: (processId, name) => this.processes.signal(sandboxId, processId, name),
    });
  }

  /** Runs a program whose input stays open. Aborting it closes the connection. */
  async interactive(
    sandboxId: string,
    request: ExecInput,
    options: CallOptions = {},
  ): Promise<InteractiveExec> {
    const { openInteractiveExec } = await import('./streams/interactive-exec.ts');
    return openInteractiveExec(this.#transport, sandboxId, request, options);
  }

  /** Starts a program that continues without a reader: `processes.attach` reads its output. */
  background(sandboxId: string, request: ExecInput, options: CallOptions = {}): Promise<ProcessInfo> {
    const path = pathOf('sandboxes', sandboxId, 'exec');
    return this.#transport.json({ ...options, method: 'POST', path, json: { ...request, background: true } });
  }

  version(options: CallOptions = {}): Promise<ServerVersion> {
    return this.#transport.json({ ...options, method: 'GET', path: '/v1/version' });
  }

  /** Calls any operation of the API that has no method of its own here. */
  request<T>(spec: RequestSpec): Promise<T> {
    return this.#transport.json(spec);
  }

  /** Closes idle connections. Running requests go on. */
  close(): void {
    this.#transport.close();
  }
}
