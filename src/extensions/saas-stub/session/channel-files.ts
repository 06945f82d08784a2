import { z } from 'zod';
import { FileChange, FileEntry } from '../../../contract/sandboxes/files.ts';
import type {
  AbortableOptions,
  FileReadOptions,
  FileWriteOptions,
  SandboxFiles,
} from '../../../core/ports/session.ts';
import type { ChannelRequest } from '../wire/channel.ts';
import { CHANNEL_FRAME } from '../wire/frames.ts';
import type { ChannelClient } from './channel-client.ts';

type WithoutPlace<Request> = Request extends ChannelRequest ? Omit<Request, 'name' | 'owner'> : never;
type OpenChannel = (request: WithoutPlace<ChannelRequest>, signal?: AbortSignal) => Promise<ChannelClient>;

const Listing = z.strictObject({ entries: z.array(FileEntry), truncated: z.boolean() });
const Opened = z.strictObject({ size: z.number().int().min(0) });
const Unpacked = z.strictObject({ files: z.number().int().min(0) });
const NOTHING = new Uint8Array(0);

async function* dataOf(channel: ChannelClient): AsyncGenerator<Uint8Array> {
  try {
    for (;;) {
      const payload = await channel.expect(CHANNEL_FRAME.data);
      if (payload.length === 0) return;
      yield payload;
    }
  } finally {
    channel.close();
  }
}

async function* changesOf(
  channel: ChannelClient,
  signal: AbortSignal | undefined,
): AsyncGenerator<FileChange> {
  try {
    for (;;) yield FileChange.parse(await channel.expectJson(CHANNEL_FRAME.change));
  } catch (error) {
    if (signal?.aborted !== true) throw error;
  } finally {
    channel.close();
  }
}

export class ChannelFiles implements SandboxFiles {
  readonly #open: OpenChannel;

  constructor(open: OpenChannel) {
    this.#open = open;
  }

  async stat(path: string, options?: AbortableOptions): Promise<FileEntry> {
    return await this.#ask({ channel: 'stat', path }, FileEntry, options);
  }

  async list(path: string, options?: AbortableOptions & { readonly limit?: number }) {
    const limit = options?.limit ?? 10_000;
    return await this.#ask({ channel: 'list', path, limit }, Listing, options);
  }

  async read(path: string, options?: FileReadOptions) {
    const { offset = 0, length = null } = options ?? {};
    const channel = await this.#open({ channel: 'read', path, offset, length }, options?.signal);
    const { size } = await this.#result(channel, Opened);
    return { size, body: dataOf(channel) };
  }

  async write(path: string, body: AsyncIterable<Uint8Array>, options?: FileWriteOptions): Promise<FileEntry> {
    const { mode = null, exclusive = false } = options ?? {};
    const channel = await this.#open({ channel: 'write', path, mode, exclusive }, options?.signal);
    return await this.#send(channel, body, FileEntry);
  }

  async mkdir(
    path: string,
    options: AbortableOptions & { readonly parents: boolean; readonly mode: number },
  ) {
    const { parents, mode } = options;
    await this.#ask({ channel: 'mkdir', path, parents, mode }, z.null(), options);
  }

  async move(from: string, to: string, options: AbortableOptions & { readonly overwrite: boolean }) {
    await this.#ask({ channel: 'move', from, to, overwrite: options.overwrite }, z.null(), options);
  }

  async remove(path: string, options: AbortableOptions & { readonly recursive: boolean }) {
    await this.#ask({ channel: 'remove', path, recursive: options.recursive }, z.null(), options);
  }

  async watch(path: string, options: AbortableOptions & { readonly recursive: boolean }) {
    const { recursive, signal } = options;
    const channel = await this.#open({ channel: 'watch', path, recursive }, signal);
    await this.#result(channel, z.null());
    return changesOf(channel, signal);
  }

  async upload(path: string, tar: AsyncIterable<Uint8Array>, options?: AbortableOptions) {
    const channel = await this.#open({ channel: 'upload', path }, options?.signal);
    return await this.#send(channel, tar, Unpacked);
  }

  async download(path: string, options?: AbortableOptions) {
    const channel = await this.#open({ channel: 'download', path }, options?.signal);
    await this.#result(channel, z.null());
    return dataOf(channel);
  }

  async #ask<Result>(
    request: WithoutPlace<ChannelRequest>,
    schema: z.ZodType<Result>,
    options?: AbortableOptions,
  ): Promise<Result> {
    const channel = await this.#open(request, options?.signal);
    const result = await this.#result(channel, schema);
    channel.close();
    return result;
  }

  async #result<Result>(channel: ChannelClient, schema: z.ZodType<Result>): Promise<Result> {
    try {
      return schema.parse(await channel.expectJson(CHANNEL_FRAME.result));
    } catch (error) {
      channel.close();
      throw channel.lost(error);
    }
  }

  /** Sends a body. The stub may refuse in the middle: its answer is awaited from the start, and ends the sending. */
  async #send<Result>(
    channel: ChannelClient,
    body: AsyncIterable<Uint8Array>,
    schema: z.ZodType<Result>,
  ): Promise<Result> {
    let answered = false;
    const result = this.#result(channel, schema).finally(() => {
      answered = true;
    });
    result.catch(() => {});
    try {
      for await (const chunk of body) {
        if (answered) break;
        if (chunk.length > 0) await channel.send(CHANNEL_FRAME.data, chunk);
      }
      if (!answered) await channel.send(CHANNEL_FRAME.data, NOTHING);
    } catch (error) {
      if (!answered) channel.close();
      await result;
      throw error;
    }
    const answer = await result;
    channel.close();
    return answer;
  }
}
