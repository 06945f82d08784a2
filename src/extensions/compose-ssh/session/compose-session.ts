import { SandboxerError } from '../../../contract/errors/errors.ts';
import type { SandboxFiles, SandboxServices, SandboxSession } from '../../../core/ports/session.ts';
import type { Channel } from '../../shared/channel/channel.ts';
import { BACKEND } from '../remote/failure.ts';
import type { StackHandle } from '../remote/stack-handle.ts';
import { ServiceView, splitProcessId } from './service-view.ts';

export interface StackAccess {
  open(service: string): Promise<Channel>;
  readonly logs: SandboxServices['logs'];
}

/**
 * Session over the services of a stack. Programs and files are those of the default service unless another is named; a port is
 * that of the service that publishes it. The next request opens a lost connection again.
 */
export class ComposeSession implements SandboxSession {
  readonly files: SandboxFiles;
  readonly services: SandboxServices;
  readonly spawn: SandboxSession['spawn'];
  readonly processes: NonNullable<SandboxSession['processes']>;
  readonly #access: StackAccess;
  readonly #stack: StackHandle;
  readonly #views = new Map<string, ServiceView>();
  readonly #channels = new Map<string, Promise<Channel>>();
  #closed = false;

  constructor(first: Channel, stack: StackHandle, access: StackAccess) {
    this.#access = access;
    this.#stack = stack;
    this.#channels.set(stack.service, Promise.resolve(first));
    const own = this.#view(stack.service);
    this.files = own.files;
    this.spawn = own.spawn;
    this.processes = own.processes;
    this.services = {
      names: stack.services,
      first: stack.service,
      session: (name) => this.#view(name),
      logs: access.logs,
    };
  }

  attach: NonNullable<SandboxSession['attach']> = async (id, from, options) => {
    const { service } = splitProcessId(id);
    if (service !== null && !this.#stack.services.includes(service))
      throw new SandboxerError('SBX_PROCESS_NOT_FOUND', `There is no process "${id}".`);
    return await this.#view(service ?? this.#stack.service).attach(id, from, options);
  };

  dial: NonNullable<SandboxSession['dial']> = async (port, options) =>
    await this.#view(this.#stack.ports[String(port)] ?? this.#stack.service).dial(port, options);

  async close(): Promise<void> {
    this.#closed = true;
    const channels = [...this.#channels.values()];
    this.#channels.clear();
    for (const channel of channels) await channel.then(({ session }) => session.close()).catch(() => {});
  }

  #view(service: string): ServiceView {
    const known = this.#views.get(service);
    if (known !== undefined) return known;
    const suffix = service === this.#stack.service ? '' : `@${service}`;
    const view = new ServiceView(() => this.#session(service), suffix);
    this.#views.set(service, view);
    return view;
  }

  async #session(service: string): Promise<SandboxSession> {
    const known = this.#channels.get(service);
    if (known !== undefined) {
      const channel = await known.catch(() => null);
      if (channel !== null && (!channel.isLost || this.#closed)) return channel.session;
      if (this.#channels.get(service) === known) this.#channels.delete(service);
    }
    if (this.#closed) {
      throw new SandboxerError('SBX_EXTENSION_FAILED', 'The session was closed.', { backend: BACKEND });
    }
    const opening = this.#channels.get(service) ?? this.#access.open(service);
    this.#channels.set(service, opening);
    return (await opening).session;
  }
}
