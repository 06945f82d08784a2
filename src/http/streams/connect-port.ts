import { dialPort } from '../../control/use/use-sandbox.ts';
import { problemOf } from '../present/problem-of.ts';
import type { WebSocketContext } from '../route/web-socket-route.ts';
import { InputQueue } from './input-queue.ts';
import { WebSocketSender } from './web-socket-sender.ts';

const NORMAL = 1000;
const FAILED = 1011;

/** Relays bytes to and from a TCP port inside. The text message `end` closes our half; closing the socket closes both. */
export async function connectPort(context: WebSocketContext<{ id: string; port: number }>): Promise<void> {
  const { services, caller, params, signal } = context;
  const connection = await dialPort(services.control, caller, { id: params.id, port: params.port, signal });
  const webSocket = await context.accept().catch((error: unknown) => {
    connection.destroy();
    throw error;
  });
  const hangUp = () => connection.destroy();
  webSocket.once('close', hangUp);
  signal.addEventListener('abort', hangUp, { once: true });
  if (signal.aborted) hangUp();
  const failed = (error: unknown) => webSocket.close(FAILED, problemOf(error).code);
  const input = new InputQueue(webSocket, failed);
  webSocket.on('message', (data, isBinary) => {
    const bytes = data as Buffer;
    if (isBinary) input.add(bytes.length, () => connection.write(bytes));
    else if (bytes.toString() === 'end') input.add(0, () => connection.end());
    else webSocket.close(1003, 'Bytes are sent as binary messages.');
  });
  try {
    const sender = new WebSocketSender(webSocket);
    for await (const chunk of connection.readable) {
      const room = sender.send(chunk);
      if (room) await room;
    }
    webSocket.close(NORMAL);
  } catch (error) {
    failed(error);
  } finally {
    connection.destroy();
  }
}
