import type { Duplex } from 'node:stream';
import type { ChannelRequest } from './channel.ts';
import type { StubReply, StubRequest } from './protocol.ts';

/** Transport to a stub: HTTP, or a simulated network. */
export interface StubTransport {
  /**
   * Sends a request, with `key` in place of its own. Rejects with a `StubConnectionError` when there will be no reply, and with
   * the signal's reason when it aborts.
   */
  call(request: StubRequest, signal: AbortSignal, key?: string): Promise<StubReply>;
  /** Opens a byte stream for a process, a file or a port. Without it the inside offers only `exec` without effect. */
  open?(request: ChannelRequest, signal?: AbortSignal, key?: string): Promise<Duplex>;
  close?(): Promise<void>;
}

export class StubConnectionError extends Error {
  override readonly name = 'StubConnectionError';
  /** Whether the request may have reached the other side. */
  readonly sent: boolean;

  constructor(message: string, sent: boolean, options?: ErrorOptions) {
    super(message, options);
    this.sent = sent;
  }
}
