import type { Duplex } from 'node:stream';
import { ErrorCode, SandboxerError } from '../../../contract/errors/errors.ts';
import type { Frame } from '../wire/frames.ts';
import {
  CHANNEL_FRAME,
  decodeFrames,
  encodeFrame,
  encodeJsonFrame,
  MAX_FRAME_BYTES,
} from '../wire/frames.ts';

function problemOf(payload: Buffer, extensionId: string): SandboxerError {
  const fallback = new SandboxerError('SBX_EXTENSION_FAILED', 'The stub refused.', { backend: extensionId });
  try {
    const { code, detail } = JSON.parse(payload.toString()) as { code: unknown; detail: unknown };
    const known = ErrorCode.safeParse(code);
    if (!known.success || typeof detail !== 'string') return fallback;
    return new SandboxerError(known.data, detail.slice(0, 1000), { backend: extensionId });
  } catch {
    return fallback;
  }
}

/** Client end of one channel. Frames are read one at a time, on request: the socket is the only buffer. */
export class ChannelClient {
  readonly #stream: Duplex;
  readonly #frames: AsyncGenerator<Frame>;
  readonly #extensionId: string;

  constructor(stream: Duplex, extensionId: string) {
    this.#stream = stream;
    this.#extensionId = extensionId;
    this.#frames = decodeFrames(stream);
    stream.on('error', () => {});
  }

  /** Returns the next frame, or `null` when the stub has ended the channel. Throws the stub's refusal. */
  async next(): Promise<Frame | null> {
    const { value, done } = await this.#frames.next().catch((cause: unknown) => {
      throw this.lost(cause);
    });
    if (done === true) return null;
    if (value.type === CHANNEL_FRAME.error) throw problemOf(value.payload, this.#extensionId);
    return value;
  }

  async expect(type: number): Promise<Buffer> {
    const frame = await this.next();
    if (frame?.type === type) return frame.payload;
    throw this.lost(new Error(`Expected frame ${type}, got ${frame?.type ?? 'the end'}.`));
  }

  async expectJson(type: number): Promise<unknown> {
    return JSON.parse((await this.expect(type)).toString());
  }

  async send(type: number, payload: Uint8Array): Promise<void> {
    for (let offset = 0; offset === 0 || offset < payload.length; offset += MAX_FRAME_BYTES) {
      await this.#write(encodeFrame(type, payload.subarray(offset, offset + MAX_FRAME_BYTES)));
    }
  }

  async sendJson(type: number, value: unknown): Promise<void> {
    await this.#write(encodeJsonFrame(type, value));
  }

  close(): void {
    this.#stream.destroy();
  }

  lost(cause: unknown): SandboxerError {
    if (cause instanceof SandboxerError) return cause;
    return new SandboxerError('SBX_EXTENSION_FAILED', 'The channel to the stub was lost.', {
      backend: this.#extensionId,
      cause,
    });
  }

  async #write(frame: Buffer): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      if (this.#stream.destroyed) return reject(this.lost(new Error('It is closed.')));
      const close = () => reject(this.lost(new Error('It was closed.')));
      this.#stream.once('close', close);
      this.#stream.write(frame, (error) => {
        this.#stream.off('close', close);
        if (error) reject(this.lost(error));
        else resolve();
      });
    });
  }
}
