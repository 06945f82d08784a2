import type { Duplex } from 'node:stream';
import { z } from 'zod';
import { SandboxerError } from '../../../contract/errors/errors.ts';
import { ProcessInfo } from '../../../contract/sandboxes/exec.ts';
import type {
  AbortableOptions,
  PortConnection,
  SandboxProcess,
  SandboxSession,
  SpawnSpec,
} from '../../../core/ports/session.ts';
import type { ChannelRequest } from '../wire/channel.ts';
import { CHANNEL_FRAME } from '../wire/frames.ts';
import { ChannelClient } from './channel-client.ts';
import { ChannelFiles } from './channel-files.ts';
import { ChannelProcess } from './channel-process.ts';

type OpenStream = (request: ChannelRequest, signal?: AbortSignal) => Promise<Duplex>;

const Started = z.strictObject({ process_id: z.string().max(200) });
const NOTHING = new Uint8Array(0);

async function* portBytes(channel: ChannelClient): AsyncGenerator<Uint8Array> {
  for (let frame = await channel.next(); frame !== null; frame = await channel.next()) {
    if (frame.payload.length === 0) return;
    yield frame.payload;
  }
}

/** Session of one object, with one byte stream for each process, file and port. */
export class ChannelSession implements SandboxSession {
  readonly files: ChannelFiles;
  readonly #at: Pick<ChannelRequest, 'name' | 'owner'>;
  readonly #openStream: OpenStream;
  readonly #extensionId: string;
  readonly #streams = new Set<Duplex>();

  constructor(at: Pick<ChannelRequest, 'name' | 'owner'>, openStream: OpenStream, extensionId: string) {
    this.#at = at;
    this.#openStream = openStream;
    this.#extensionId = extensionId;
    this.files = new ChannelFiles((request, signal) =>
      this.#open({ ...request, ...at } as ChannelRequest, signal),
    );
  }

  async spawn(spec: SpawnSpec, options?: AbortableOptions): Promise<SandboxProcess> {
    if (spec.terminal !== null) throw new SandboxerError('SBX_UNSUPPORTED', 'The stub has no terminals.');
    if (spec.user !== null) throw new SandboxerError('SBX_UNSUPPORTED', 'The stub has one user only.');
    const { cwd, timeoutSeconds, stdin, background } = spec;
    const request: ChannelRequest = {
      channel: 'spawn',
      ...this.#at,
      argv: [...spec.argv],
      env: { ...spec.env },
      cwd,
      timeout_seconds: timeoutSeconds,
      stdin,
      background,
    };
    return await this.#process(request, 0, options?.signal);
  }

  async attach(processId: string, from: number, options?: AbortableOptions): Promise<SandboxProcess> {
    const request = { channel: 'attach', ...this.#at, process_id: processId, from } as const;
    return await this.#process(request, from, options?.signal);
  }

  async processes(options?: AbortableOptions): Promise<ProcessInfo[]> {
    const channel = await this.#open({ channel: 'processes', ...this.#at }, options?.signal);
    try {
      return z.array(ProcessInfo).parse(await channel.expectJson(CHANNEL_FRAME.result));
    } finally {
      channel.close();
    }
  }

  async dial(port: number, options?: AbortableOptions): Promise<PortConnection> {
    const channel = await this.#open({ channel: 'dial', ...this.#at, port }, options?.signal);
    await channel.expect(CHANNEL_FRAME.result).catch((error: unknown) => {
      channel.close();
      throw error;
    });
    return {
      readable: portBytes(channel),
      write: async (data) => {
        if (data.length > 0) await channel.send(CHANNEL_FRAME.data, data);
      },
      end: async () => await channel.send(CHANNEL_FRAME.data, NOTHING),
      destroy: () => channel.close(),
    };
  }

  async close(): Promise<void> {
    for (const stream of this.#streams) stream.destroy();
  }

  async #process(request: ChannelRequest, from: number, signal?: AbortSignal): Promise<SandboxProcess> {
    const channel = await this.#open(request, signal);
    try {
      const { process_id } = Started.parse(await channel.expectJson(CHANNEL_FRAME.started));
      return new ChannelProcess(process_id, channel, from);
    } catch (error) {
      channel.close();
      throw channel.lost(error);
    }
  }

  async #open(request: ChannelRequest, signal?: AbortSignal): Promise<ChannelClient> {
    const stream = await this.#openStream(request, signal).catch((cause: unknown) => {
      throw new SandboxerError('SBX_EXTENSION_FAILED', 'The stub does not answer.', {
        backend: this.#extensionId,
        cause,
      });
    });
    this.#streams.add(stream);
    const abort = () => stream.destroy();
    signal?.addEventListener('abort', abort, { once: true });
    stream.once('close', () => {
      this.#streams.delete(stream);
      signal?.removeEventListener('abort', abort);
    });
    return new ChannelClient(stream, this.#extensionId);
  }
}
