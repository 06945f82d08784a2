import type { IncomingMessage, RequestListener } from 'node:http';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { piecesOf } from './pieces-of.ts';

async function answering(listener: RequestListener, use: (message: IncomingMessage) => Promise<void>) {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  try {
    await use(
      await new Promise<IncomingMessage>((resolve, reject) => {
        const asked = request({ host: '127.0.0.1', port }, resolve);
        asked.once('error', reject);
        asked.end();
      }),
    );
  } finally {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
}

describe('piecesOf', () => {
  it('piecesOf gives every byte in order, and holds a fast sender back', async () => {
    const sent = Buffer.alloc(16 * 1_048_576, 'abcdefg');
    let left = 0;
    await answering(
      (_, response) => {
        response.write(sent.subarray(0, 12 * 1_048_576), () => {
          left = Date.now();
        });
        response.end(sent.subarray(12 * 1_048_576));
      },
      async (message) => {
        const got: Buffer[] = [];
        for await (const piece of piecesOf(message)) {
          if (got.length === 0) {
            await sleep(200);
            expect(left).toBe(0);
          }
          got.push(piece);
        }
        expect(Buffer.concat(got).equals(sent)).toBe(true);
      },
    );
  });

  it('piecesOf throws when the answer is cut off', async () => {
    await answering(
      (_, response) => {
        response.write('some', () => response.destroy());
      },
      async (message) => {
        const read = async () => {
          for await (const piece of piecesOf(message)) expect(piece.toString()).toBe('some');
        };
        await expect(read()).rejects.toMatchObject({ code: 'ECONNRESET' });
      },
    );
  });

  it('piecesOf ends the answer when its reader stops early', async () => {
    const { promise: hungUp, resolve } = Promise.withResolvers<void>();
    await answering(
      (_, response) => {
        response.once('close', resolve);
        response.write('some');
      },
      async (message) => {
        for await (const _ of piecesOf(message)) break;
        await hungUp;
        expect(message.destroyed).toBe(true);
      },
    );
  });
});
