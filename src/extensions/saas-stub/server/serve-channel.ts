import { once } from 'node:events';
import { watch } from 'node:fs';
import { lstat } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { connect } from 'node:net';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { SandboxerError } from '../../../contract/errors/errors.ts';
import { Signal } from '../../../contract/sandboxes/exec.ts';
import type { ChannelRequestOf } from '../wire/channel.ts';
import { ChannelRequest } from '../wire/channel.ts';
import type { Frame } from '../wire/frames.ts';
import { CHANNEL_FRAME, decodeFrames, encodeFrame, encodeJsonFrame } from '../wire/frames.ts';
import { unlessAbsent } from './confined-path.ts';
import { drained } from './drained.ts';
import type { Machine } from './machine.ts';
import type { ManagedProcess, Reader } from './managed-process.ts';

const NOTHING = new Uint8Array(0);

export interface ChannelDeps {
  /** Returns the machine of a running object; throws the reason when there is none. `null` cuts the connection. */
  admit(request: ChannelRequest): Promise<Machine | null>;
}

class ChannelServer {
  readonly #stream: Duplex;
  readonly #frames: AsyncGenerator<Frame>;

  constructor(stream: Duplex, frames: AsyncGenerator<Frame>) {
    this.#stream = stream;
    this.#frames = frames;
  }

  async serve(machine: Machine, request: ChannelRequest): Promise<void> {
    const { files } = machine;
    switch (request.channel) {
      case 'spawn': {
        const process = await machine.start(request);
        await this.#process(process, 0);
        break;
      }
      case 'attach':
        await this.#process(machine.process(request.process_id), request.from);
        break;
      case 'processes':
        return await this.#answer(machine.processes());
      case 'dial':
        return await this.#dial(request);
      case 'stat':
        return await this.#answer(await files.stat(request.path));
      case 'list':
        return await this.#answer(await files.list(request.path, request.limit));
      case 'read':
        await files.read(
          request.path,
          request,
          (size) => this.#answer({ size }),
          (chunk) => this.#send(encodeFrame(CHANNEL_FRAME.data, chunk)),
        );
        return await this.#send(encodeFrame(CHANNEL_FRAME.data, NOTHING));
      case 'write':
        return await this.#answer(await files.write(request.path, this.#body(), request));
      case 'mkdir':
        await files.mkdir(request.path, request);
        return await this.#answer(null);
      case 'move':
        await files.move(request.from, request.to, request.overwrite);
        return await this.#answer(null);
      case 'remove':
        await files.remove(request.path, request.recursive);
        return await this.#answer(null);
      case 'upload':
        return await this.#answer(await files.upload(request.path, this.#body()));
      case 'download':
        await files.stat(request.path);
        await this.#answer(null);
        for await (const chunk of files.download(request.path)) {
          await this.#send(encodeFrame(CHANNEL_FRAME.data, chunk));
        }
        return await this.#send(encodeFrame(CHANNEL_FRAME.data, NOTHING));
      case 'watch':
        return await this.#watch(machine, request);
    }
  }

  async #answer(value: unknown): Promise<void> {
    await this.#send(encodeJsonFrame(CHANNEL_FRAME.result, value));
  }

  async #send(frame: Buffer): Promise<void> {
    if (this.#stream.destroyed) throw new Error('The other side has gone.');
    if (!this.#stream.write(frame)) await drained(this.#stream);
  }

  /** Yields the client's data up to its end mark; without one the connection was lost and the data is incomplete. */
  async *#body(): AsyncGenerator<Uint8Array> {
    for (;;) {
      const { value, done } = await this.#frames.next();
      if (done === true) throw new Error('The other side has gone.');
      if (value.type !== CHANNEL_FRAME.data) continue;
      if (value.payload.length === 0) return;
      yield value.payload;
    }
  }

  async #process(process: ManagedProcess, from: number): Promise<void> {
    const stream = this.#stream;
    const ended = Promise.withResolvers<void>();
    const reader: Reader = {
      deliver: ({ stream: name, data }) => stream.write(encodeFrame(CHANNEL_FRAME[name], data)),
      exited: (status) => {
        stream.end(encodeJsonFrame(CHANNEL_FRAME.exit, status));
        ended.resolve();
      },
    };
    stream.write(encodeJsonFrame(CHANNEL_FRAME.started, { process_id: process.id }));
    const { missing, chunks } = process.join(reader, from);
    if (missing > 0) stream.write(encodeJsonFrame(CHANNEL_FRAME.gap, { missing }));
    for (const chunk of chunks) reader.deliver(chunk);
    if (process.status !== null) reader.exited(process.status);
    stream.on('drain', () => process.ready(reader));
    stream.once('close', () => ended.resolve());
    void this.#input(process).catch(() => {});
    await ended.promise;
    process.leave(reader);
    if (!process.background && process.status === null) await process.kill();
  }

  async #input(process: ManagedProcess): Promise<void> {
    for (;;) {
      const { value, done } = await this.#frames.next();
      if (done === true) {
        this.#stream.destroy();
        return;
      }
      if (value.type === CHANNEL_FRAME.stdin) await process.write(Buffer.from(value.payload));
      else if (value.type === CHANNEL_FRAME.stdinEnd) process.endInput();
      else if (value.type === CHANNEL_FRAME.signal) process.signal(Signal.parse(value.payload.toString()));
    }
  }

  async #dial({ port }: ChannelRequestOf<'dial'>): Promise<void> {
    const socket = connect({ host: '127.0.0.1', port, allowHalfOpen: true });
    try {
      await once(socket, 'connect').catch(() => {
        throw new SandboxerError('SBX_NOT_FOUND', `Nothing listens on port ${port} inside.`);
      });
      socket.on('error', () => this.#stream.destroy());
      this.#stream.once('close', () => socket.destroy());
      await this.#answer(null);
      await Promise.all([this.#fromPort(socket), this.#toPort(socket)]);
    } finally {
      socket.destroy();
    }
  }

  async #fromPort(socket: Socket): Promise<void> {
    for await (const chunk of socket.iterator({ destroyOnReturn: false })) {
      await this.#send(encodeFrame(CHANNEL_FRAME.data, chunk));
    }
    await this.#send(encodeFrame(CHANNEL_FRAME.data, NOTHING));
  }

  async #toPort(socket: Socket): Promise<void> {
    for await (const chunk of this.#body()) {
      if (!socket.write(chunk)) await drained(socket);
    }
    socket.end();
  }

  async #watch(machine: Machine, { path, recursive }: ChannelRequestOf<'watch'>): Promise<void> {
    const { path: directory, kind } = await machine.files.stat(path);
    if (kind === 'symlink') throw new SandboxerError('SBX_PATH_REFUSED', `${path}: it is a link`);
    const watcher = watch(directory, { recursive });
    const report = (change: { kind: string; path: string }) => {
      this.#stream.write(encodeJsonFrame(CHANNEL_FRAME.change, change));
    };
    watcher.on('change', (type, name) => {
      const changed = join(directory, String(name));
      if (this.#stream.writableNeedDrain) return report({ kind: 'overflow', path: directory });
      if (type === 'change') return report({ kind: 'modified', path: changed });
      unlessAbsent(lstat(changed))
        .then((stats) => report({ kind: stats === null ? 'removed' : 'created', path: changed }))
        .catch(() => {});
    });
    watcher.on('error', () => this.#stream.destroy());
    try {
      await this.#answer(null);
      await this.#frames.next();
    } finally {
      watcher.close();
    }
  }
}

function problemOf(error: unknown): { code: string; detail: string } {
  if (error instanceof SandboxerError) return { code: error.code, detail: error.detail };
  return { code: 'SBX_EXTENSION_FAILED', detail: error instanceof Error ? error.message : 'It failed.' };
}

/** Serves one upgraded connection until either side is done. */
export async function serveChannel(stream: Duplex, deps: ChannelDeps): Promise<void> {
  stream.on('error', () => {});
  const frames = decodeFrames(stream);
  try {
    const first = await frames.next();
    if (first.done === true) return;
    const request = ChannelRequest.parse(JSON.parse(first.value.payload.toString()));
    const machine = await deps.admit(request);
    if (machine !== null) await new ChannelServer(stream, frames).serve(machine, request);
    else stream.destroy();
  } catch (error) {
    if (!stream.destroyed) stream.write(encodeJsonFrame(CHANNEL_FRAME.error, problemOf(error)));
  } finally {
    if (!stream.destroyed) stream.end();
    stream.resume();
  }
}
