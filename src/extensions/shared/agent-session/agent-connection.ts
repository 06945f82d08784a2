import type { Duplex } from 'node:stream';
import { SandboxerError } from '../../../contract/errors/errors.ts';
import type { ChannelPort } from './agent-channel.ts';
import { AgentChannel } from './agent-channel.ts';
import type { FrameSink } from './frame-parser.ts';
import { FrameParser } from './frame-parser.ts';
import { PayloadReader, PayloadWriter } from './payload.ts';
import { ProtocolViolation } from './protocol-violation.ts';
import {
  AGENT_CHANNEL,
  costOf,
  HEADER_BYTES,
  isCharged,
  isLast,
  MAGIC,
  MAX_PAYLOAD,
  MAX_REQUEST,
  MAX_WINDOW,
  PROTOCOL_VERSION,
  T,
} from './wire.ts';
import { withoutStack } from './without-stack.ts';

export interface AgentInfo {
  readonly version: number;
  /** Bits: 1 PID 1 duties, 2 root, 4 terminals, 8 watching, 16 hands sockets out. */
  readonly features: number;
  readonly pid: number;
  readonly uid: number;
}

export interface ConnectionOptions {
  /** Backend named in errors. */
  readonly backend?: string;
  /** Default user and directory of this connection; the agent's own when left out. */
  readonly user?: string;
  readonly cwd?: string;
  /** Bytes that may be under way on one channel. */
  readonly windowBytes?: number;
}

const MAX_CHANNELS = 4096;
const DEFAULT_WINDOW = 1_048_576;
const JOIN_BELOW = 4096;
const NOTHING = Buffer.alloc(0);

/** Connection to an agent: frames over one byte stream, and their channels. The agent is not trusted. */
export class AgentConnection implements FrameSink, ChannelPort {
  readonly backend: string | undefined;
  readonly windowBytes: number;
  readonly #stream: Duplex;
  readonly #channels = new Map<number, AgentChannel>();
  readonly #options: ConnectionOptions;
  readonly #welcome = Promise.withResolvers<AgentInfo>();
  readonly #pings: (() => void)[] = [];
  readonly #unsent = new Set<() => void>();
  readonly #ended = Promise.withResolvers<SandboxerError>();
  #lost: SandboxerError | null = null;
  #nextId = 1;
  #inputWindow = 0;
  #welcomed = false;
  maxPayload = MAX_PAYLOAD;
  /** Call with each chunk of the stream. */
  readonly receive: (chunk: Buffer) => void;

  constructor(stream: Duplex, options: ConnectionOptions) {
    this.#stream = stream;
    this.#options = options;
    this.backend = options.backend;
    this.windowBytes = Math.min(Math.max(options.windowBytes ?? DEFAULT_WINDOW, 65_536), MAX_WINDOW);
    this.#welcome.promise.catch(() => {});
    const parser = new FrameParser(this);
    this.receive = (chunk) => {
      if (this.#lost !== null) return;
      try {
        parser.push(chunk);
      } catch (error) {
        this.lose(error);
      }
    };
    stream.on('error', (error) => this.lose(error));
    stream.on('close', () => this.lose('It was closed.'));
    stream.on('end', () => this.lose('The other side has ended it.'));
  }

  get isLost(): boolean {
    return this.#lost !== null;
  }

  /** Resolves, with the reason, when the connection can no longer be used. */
  get ended(): Promise<SandboxerError> {
    return this.#ended.promise;
  }

  async greet(): Promise<AgentInfo> {
    const { user = '', cwd = '' } = this.#options;
    this.send(
      T.hello,
      0,
      new PayloadWriter().raw(MAGIC).u16(PROTOCOL_VERSION).string(user).string(cwd).bytes(),
    );
    return await this.#welcome.promise;
  }

  async ping(): Promise<void> {
    if (this.#lost !== null) throw this.#lost;
    await new Promise<void>((resolve) => {
      this.#pings.push(resolve);
      this.send(T.ping, 0, NOTHING);
    });
    if (this.#lost !== null) throw this.#lost;
  }

  /** Sends a request on a channel of its own. */
  open(type: number, request: PayloadWriter, subject: string): AgentChannel {
    if (this.#lost !== null) throw this.#lost;
    const payload = request.bytes();
    if (payload.length > MAX_REQUEST)
      throw new SandboxerError('SBX_INVALID_REQUEST', 'The request is too large.');
    const channel = this.#register(this.#freeId(), subject, this.windowBytes);
    let at = 0;
    for (; payload.length - at > this.maxPayload; at += this.maxPayload)
      this.send(T.part, channel.id, payload.subarray(at, at + this.maxPayload));
    this.send(type, channel.id, payload.subarray(at));
    return channel;
  }

  /** Takes a channel that the agent has opened. */
  take(id: number, subject: string): AgentChannel {
    if ((id & AGENT_CHANNEL) === 0 || this.#channels.has(id))
      throw new ProtocolViolation('a channel is opened twice');
    // Each side opens no more than MAX_CHANNELS, and may not know yet what the other has opened.
    if (this.#channels.size >= 2 * MAX_CHANNELS) throw new ProtocolViolation('too many channels are open');
    const channel = this.#register(id, subject, this.windowBytes);
    this.credit(id, this.windowBytes);
    return channel;
  }

  send(type: number, channel: number, payload: Buffer): void {
    if (this.#lost !== null) return;
    const frame = Buffer.allocUnsafe(HEADER_BYTES + payload.length);
    this.#putHeader(frame, type, channel, payload.length);
    payload.copy(frame, HEADER_BYTES);
    this.#stream.write(frame);
  }

  credit(channel: number, amount: number): void {
    if (this.#lost !== null) return;
    const frame = Buffer.allocUnsafe(HEADER_BYTES + 4);
    this.#putHeader(frame, T.window, channel, 4);
    frame.writeUInt32LE(amount, HEADER_BYTES);
    this.#stream.write(frame);
  }

  async sendBytes(type: number, channel: number, bytes: Uint8Array): Promise<void> {
    if (this.#lost !== null) throw this.#lost;
    const data = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    if (data.length < JOIN_BELOW) {
      this.send(type, channel, data);
      if (!this.#stream.writableNeedDrain) return;
    }
    await new Promise<void>((resolve) => {
      const sent = () => {
        this.#unsent.delete(sent);
        resolve();
      };
      this.#unsent.add(sent);
      if (data.length < JOIN_BELOW) {
        this.#stream.write(NOTHING, sent);
      } else {
        const header = Buffer.allocUnsafe(HEADER_BYTES);
        this.#putHeader(header, type, channel, data.length);
        this.#stream.cork();
        this.#stream.write(header);
        this.#stream.write(data, sent);
        this.#stream.uncork();
      }
    });
    if (this.#lost !== null) throw this.#lost;
  }

  begin(type: number, id: number, length: number): void {
    this.#channel(id, type).charge(length);
  }

  piece(type: number, id: number, bytes: Buffer, ended: number | null): void {
    const beyond = ended === null ? 0 : costOf(ended) - ended;
    this.#channels.get(id)?.accept(type, bytes, bytes.length + beyond);
  }

  frame(type: number, id: number, payload: Buffer): void {
    if (id === 0) {
      this.#control(type, payload);
      return;
    }
    const channel = this.#channel(id, type);
    if (type === T.window) {
      const reader = new PayloadReader(payload);
      channel.addSendCredit(reader.u32());
      reader.end();
      return;
    }
    if (type === T.welcome || type === T.pong) throw new ProtocolViolation('a greeting came on a channel');
    const charged = isCharged(type);
    if (charged) channel.charge(payload.length);
    if (isLast(type)) this.#channels.delete(id);
    channel.accept(type, payload, charged ? costOf(payload.length) : 0);
  }

  /** Ends the connection; every pending call rejects. `cause`: an error, or a description. */
  lose(cause: unknown): SandboxerError {
    if (this.#lost !== null) return this.#lost;
    const why =
      cause instanceof ProtocolViolation ? `it broke the protocol: ${cause.message}` : 'it was closed';
    const extras = this.backend === undefined ? { cause } : { cause, backend: this.backend };
    this.#lost = withoutStack(
      () =>
        new SandboxerError('SBX_EXTENSION_FAILED', `The channel to the sandbox was lost: ${why}.`, extras),
    );
    this.#stream.destroy();
    this.#welcome.reject(this.#lost);
    for (const channel of [...this.#channels.values()]) channel.fail(this.#lost);
    this.#channels.clear();
    for (const answered of this.#pings.splice(0)) answered();
    for (const sent of [...this.#unsent]) sent();
    this.#ended.resolve(this.#lost);
    return this.#lost;
  }

  #control(type: number, payload: Buffer): void {
    if (type === T.pong && payload.length === 0) {
      const answered = this.#pings.shift();
      if (answered === undefined) throw new ProtocolViolation('an answer came unasked');
      answered();
      return;
    }
    if (type !== T.welcome || this.#welcomed)
      throw new ProtocolViolation('a greeting came twice or not at all');
    this.#welcomed = true;
    this.#welcome.resolve(this.#readWelcome(payload));
  }

  #readWelcome(payload: Buffer): AgentInfo {
    const reader = new PayloadReader(payload);
    if (reader.raw(MAGIC.length) !== MAGIC) throw new ProtocolViolation('this is not an agent');
    const version = reader.u16();
    if (version !== PROTOCOL_VERSION) throw new ProtocolViolation(`the agent speaks version ${version}`);
    const info = { version, features: reader.u32(), pid: reader.u32(), uid: reader.u32() };
    this.maxPayload = Math.min(Math.max(reader.u32(), 4096), MAX_PAYLOAD);
    this.#inputWindow = Math.min(reader.u32(), MAX_WINDOW);
    reader.end();
    return info;
  }

  #channel(id: number, type: number): AgentChannel {
    const channel = this.#channels.get(id);
    if (channel === undefined)
      throw new ProtocolViolation(`frame ${type} came on a channel that is not open`);
    return channel;
  }

  #register(id: number, subject: string, window: number): AgentChannel {
    const channel = new AgentChannel(id, subject, { window, sendCredit: this.#inputWindow, port: this });
    this.#channels.set(id, channel);
    return channel;
  }

  #freeId(): number {
    if (this.#channels.size >= MAX_CHANNELS) {
      throw new SandboxerError('SBX_EXTENSION_FAILED', 'Too many things are open in the sandbox at once.');
    }
    while (this.#channels.has(this.#nextId)) this.#nextId = (this.#nextId % 0x7fff_ffff) + 1;
    const id = this.#nextId;
    this.#nextId = (this.#nextId % 0x7fff_ffff) + 1;
    return id;
  }

  #putHeader(frame: Buffer, type: number, channel: number, length: number): void {
    frame.writeUInt32LE(length, 0);
    frame.writeUInt16LE(type, 4);
    frame.writeUInt32LE(channel, 6);
  }
}
