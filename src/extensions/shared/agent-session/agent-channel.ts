import { SandboxerError } from '../../../contract/errors/errors.ts';
import { agentError } from './agent-error.ts';
import { ProtocolViolation } from './protocol-violation.ts';
import { lend } from './slab-pool.ts';
import { costOf, isLast, isStream, MAX_WINDOW, T } from './wire.ts';

export interface ChannelFrame {
  readonly type: number;
  readonly data: Buffer;
  readonly cost: number;
}

/** The connection as a channel uses it. */
export interface ChannelPort {
  readonly backend: string | undefined;
  readonly maxPayload: number;
  send(type: number, channel: number, payload: Buffer): void;
  /** Resolves when the bytes have left this process. */
  sendBytes(type: number, channel: number, bytes: Uint8Array): Promise<void>;
  credit(channel: number, amount: number): void;
  /** Gives the whole connection up and returns the error for callers. */
  lose(cause: unknown): SandboxerError;
}

/** Chunks below this size are copied when they wait, so that they do not hold the large buffer they lie in. */
const COPY_BELOW = 32_768;
/** Most frames without cost that wait for a reader: more than the protocol has any use for. */
const MAX_FREE_FRAMES = 256;

const NOTHING = Buffer.alloc(0);

interface ChannelTerms {
  readonly window: number;
  readonly sendCredit: number;
  readonly port: ChannelPort;
}

/** One request with its frames. Frames are read in order; unread ones hold the agent back. */
export class AgentChannel {
  readonly id: number;
  /** Named in errors: a path, a program. */
  readonly subject: string;
  readonly #port: ChannelPort;
  readonly #window: number;
  #credit: number;
  #owed = 0;
  #frames: ChannelFrame[] = [];
  #first = 0;
  #free = 0;
  #reader: { resolve(frame: ChannelFrame | null): void; reject(error: unknown): void } | null = null;
  #sendCredit: number;
  #senders: (() => void)[] = [];
  #over = false;
  #closing = false;
  #discarding = false;
  #lost: unknown = null;
  /** Called when the last frame has arrived, read or not, or the connection is lost. */
  onOver: () => void = () => {};

  constructor(id: number, subject: string, { window, sendCredit, port }: ChannelTerms) {
    this.id = id;
    this.subject = subject;
    this.#window = window;
    this.#credit = window;
    this.#sendCredit = sendCredit;
    this.#port = port;
  }

  /** Whether the last frame has come, or the connection is lost. */
  get over(): boolean {
    return this.#over;
  }

  /** Why the connection is gone, if it is. */
  get lost(): unknown {
    return this.#lost;
  }

  /** Number of unread frames. */
  get waiting(): number {
    return this.#frames.length - this.#first;
  }

  /** Returns the next frame; `null` after the last one. Rejects when the connection is lost. One reader at a time. */
  next(): Promise<ChannelFrame | null> {
    const frame = this.#frames[this.#first];
    if (frame !== undefined) {
      this.#frames[this.#first] = undefined as unknown as ChannelFrame;
      this.#first += 1;
      if (this.#first === this.#frames.length) {
        this.#frames = [];
        this.#first = 0;
      }
      this.#used(frame);
      return Promise.resolve(frame);
    }
    if (this.#lost !== null) return Promise.reject(this.#lost);
    if (this.#over || this.#closing) return Promise.resolve(null);
    return new Promise((resolve, reject) => {
      this.#reader = { resolve, reject };
    });
  }

  /** Returns the next frame, which must be of this type. Throws the agent's refusal. */
  async expect(type: number): Promise<Buffer> {
    const frame = await this.next();
    if (frame === null) throw this.#closedError();
    if (frame.type === T.error) throw this.errorOf(frame);
    if (frame.type !== type) throw this.violation(`frame ${frame.type} came instead of ${type}`);
    return frame.data;
  }

  errorOf(frame: ChannelFrame): SandboxerError {
    return this.reading(() => agentError(frame.data, this.subject, this.#port.backend));
  }

  /** Reads data of the agent: on a violation of the protocol the connection is given up. */
  reading<Result>(read: () => Result): Result {
    try {
      return read();
    } catch (error) {
      throw error instanceof ProtocolViolation ? this.#port.lose(error) : error;
    }
  }

  violation(what: string): SandboxerError {
    return this.#port.lose(new ProtocolViolation(what));
  }

  send(type: number, payload: Buffer = NOTHING): void {
    if (!this.#over && !this.#closing) this.#port.send(type, this.id, payload);
  }

  /** Waits for credit and sends. Returns `false` when the channel is over: the rest is dropped. */
  async write(bytes: Uint8Array): Promise<boolean> {
    for (let at = 0; at < bytes.length; ) {
      while (this.#sendCredit < costOf(1) && !this.#over && !this.#closing) {
        await new Promise<void>((resolve) => this.#senders.push(resolve));
      }
      if (this.#lost !== null) throw this.#lost;
      if (this.#over || this.#closing) return false;
      const piece = bytes.subarray(at, at + Math.min(this.#sendCredit, this.#port.maxPayload));
      this.#sendCredit -= costOf(piece.length);
      at += piece.length;
      await this.#port.sendBytes(T.data, this.id, piece);
    }
    return true;
  }

  /** Closes the channel. Frames still on their way are ignored. */
  close(): void {
    if (this.#over || this.#closing) return;
    this.#port.send(T.close, this.id, NOTHING);
    this.#closing = true;
    this.#drop();
    this.#wakeSenders();
    this.#reader?.resolve(null);
    this.#reader = null;
  }

  /** Reads and discards all frames, now and later, except the last: the exit is in it. */
  discard(): void {
    this.#discarding = true;
    const unread = this.#frames.slice(this.#first);
    this.#drop();
    for (const frame of unread) {
      if (isLast(frame.type)) this.#frames.push(frame);
      else this.#used(frame);
    }
  }

  // The connection calls the methods below.

  /** Charges credit for a frame that has begun to arrive. */
  charge(length: number): void {
    const cost = costOf(length);
    if (cost > this.#credit) throw new ProtocolViolation('a frame came without credit');
    this.#credit -= cost;
  }

  accept(type: number, data: Buffer, cost: number): void {
    const last = isLast(type);
    if (last) this.#over = true;
    if (this.#closing) return;
    const frame = { type, data, cost };
    if (this.#reader !== null) {
      const reader = this.#reader;
      this.#reader = null;
      this.#used(frame);
      reader.resolve(this.#kept(frame, true));
    } else if (this.#discarding && !last) {
      this.#used(frame);
    } else {
      if (cost === 0 && ++this.#free > MAX_FREE_FRAMES)
        throw new ProtocolViolation('too many frames came unasked');
      this.#frames.push(this.#kept(frame, false));
    }
    if (last) this.#finish();
  }

  addSendCredit(amount: number): void {
    if (amount === 0) throw new ProtocolViolation('credit came that is none');
    this.#sendCredit += amount;
    if (this.#sendCredit > MAX_WINDOW) throw new ProtocolViolation('more credit came than there can be');
    this.#wakeSenders();
  }

  /** Fails the channel: the connection is gone. */
  fail(error: unknown): void {
    if (this.#over) return;
    this.#over = true;
    this.#lost = error;
    this.#reader?.reject(error);
    this.#reader = null;
    this.#finish();
  }

  #finish(): void {
    this.#wakeSenders();
    this.onOver();
  }

  /**
   * Returns the frame for later reading. A control frame lies in memory that is reused at once; bytes lie in memory that stays
   * until they are given back.
   */
  #kept(frame: ChannelFrame, readAtOnce: boolean): ChannelFrame {
    if (isStream(frame.type) && (readAtOnce || frame.data.length >= COPY_BELOW)) {
      lend(frame.data);
      return frame;
    }
    return frame.data.length === 0 ? frame : { ...frame, data: Buffer.from(frame.data) };
  }

  #used(frame: ChannelFrame): void {
    if (frame.cost === 0) {
      this.#free = Math.max(0, this.#free - 1);
      return;
    }
    this.#owed += frame.cost;
    if (this.#owed < this.#window / 4 || this.#over || this.#closing) return;
    this.#credit += this.#owed;
    this.#port.credit(this.id, this.#owed);
    this.#owed = 0;
  }

  #drop(): void {
    this.#frames = [];
    this.#first = 0;
    this.#free = 0;
  }

  #wakeSenders(): void {
    const senders = this.#senders;
    this.#senders = [];
    for (const wake of senders) wake();
  }

  #closedError(): SandboxerError {
    return new SandboxerError('SBX_EXTENSION_FAILED', 'The channel was closed.', {
      ...(this.#port.backend === undefined ? {} : { backend: this.#port.backend }),
    });
  }
}
