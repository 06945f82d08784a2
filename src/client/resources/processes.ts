import type { ProcessInfo, Signal, TerminalSize } from '../../contract/sandboxes/exec.ts';
import { ExecHandle } from '../streams/exec-handle.ts';
import { FRAMES_MEDIA_TYPE } from '../streams/frames.ts';
import { pathOf, queryOf } from '../transport/path-of.ts';
import type { Bytes, CallOptions, Transport } from '../transport/transport.ts';

export interface AttachOptions extends CallOptions {
  /** Number of output bytes to skip. */
  readonly from?: number | undefined;
}

export interface ServiceOptions extends CallOptions {
  /** Service to read instead of the default one, where a sandbox is made of services. */
  readonly service?: string | undefined;
}

export interface LogOptions extends ServiceOptions {
  /** Number of lines from its end. */
  readonly tail?: number | undefined;
  /** Continues until the service ends. */
  readonly follow?: boolean | undefined;
}

/** Programs that run in a sandbox. */
export class Processes {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  async list(sandboxId: string, options: ServiceOptions = {}): Promise<readonly ProcessInfo[]> {
    const { service, ...rest } = options;
    const path = pathOf('sandboxes', sandboxId, 'processes') + queryOf({ service });
    const page = await this.#transport.json<{ items: ProcessInfo[] }>({ ...rest, method: 'GET', path });
    return page.items;
  }

  /** Reads the output of a background process, from the beginning or from an offset, until it ends. */
  attach(sandboxId: string, processId: string, options: AttachOptions = {}): ExecHandle {
    const { from = 0 } = options;
    const path = pathOf('sandboxes', sandboxId, 'processes', processId, 'output') + queryOf({ from });
    return this.#follow(sandboxId, path, from, options);
  }

  /** Reads the output of a service. Its end is no exit of a program. */
  logs(sandboxId: string, options: LogOptions = {}): ExecHandle {
    const { service, tail, follow } = options;
    const path = pathOf('sandboxes', sandboxId, 'logs') + queryOf({ service, tail, follow });
    return this.#follow(sandboxId, path, 0, options);
  }

  #follow(sandboxId: string, path: string, from: number, { signal, timeoutMs }: CallOptions): ExecHandle {
    return new ExecHandle({
      from,
      address: this.#transport.address.text,
      open: (detached) =>
        this.#transport.open({
          method: 'GET',
          path,
          accept: FRAMES_MEDIA_TYPE,
          timeoutMs,
          signal: signal ? AbortSignal.any([signal, detached]) : detached,
        }),
      kill: (id, name) => this.signal(sandboxId, id, name),
    });
  }

  /** Sends a signal to the whole process tree. */
  async signal(
    sandboxId: string,
    processId: string,
    signal: Signal,
    options: CallOptions = {},
  ): Promise<void> {
    const path = pathOf('sandboxes', sandboxId, 'processes', processId, 'signal');
    await this.#transport.json({ ...options, method: 'POST', path, json: { signal } });
  }

  /** Kills a process and all its descendants; resolves when they are gone. */
  async kill(sandboxId: string, processId: string, options: CallOptions = {}): Promise<void> {
    const path = pathOf('sandboxes', sandboxId, 'processes', processId);
    await this.#transport.json({ ...options, method: 'DELETE', path });
  }

  /** Writes to the input of a process; `end` closes it afterwards. */
  async write(
    sandboxId: string,
    processId: string,
    data: Bytes,
    options: CallOptions & { readonly end?: boolean | undefined } = {},
  ): Promise<void> {
    const { end, ...rest } = options;
    const path = pathOf('sandboxes', sandboxId, 'processes', processId, 'stdin') + queryOf({ end });
    await this.#transport.json({ ...rest, method: 'POST', path, body: data });
  }

  async resize(
    sandboxId: string,
    processId: string,
    size: TerminalSize,
    options: CallOptions = {},
  ): Promise<void> {
    const path = pathOf('sandboxes', sandboxId, 'processes', processId, 'resize');
    await this.#transport.json({ ...options, method: 'POST', path, json: size });
  }
}
