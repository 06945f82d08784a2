import { randomBytes } from 'node:crypto';
import { closeSync, mkdirSync, openSync } from 'node:fs';
import type { Socket } from 'node:net';
import { createServer } from 'node:net';
import { join } from 'node:path';
import type { Engine } from '../engine/engine.ts';
import { failed } from '../engine/failure.ts';
import type { Layout } from '../state/layout.ts';

/** Longest wait for a child to connect. */
const CALL_BACK_MS = 30_000;

/**
 * Yields a layer as a tar archive: always the same bytes for the same files. The spawner packs it, because this process may have
 * no access to the files' ids, and sends it to a socket in the server's directory. Throws when it is more than `most` bytes or
 * has names that no archive can have.
 */
export async function* packedLayer(
  engine: Engine,
  layout: Layout,
  layer: string,
  most: number,
): AsyncGenerator<Uint8Array> {
  const folder = join(layout.base, 'run');
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const name = `pack-${randomBytes(6).toString('hex')}.sock`;
  // A path of a socket must be short: through its open directory it always is.
  const directory = openSync(folder, 'r');
  const { promise: called, resolve, reject } = Promise.withResolvers<Socket>();
  const server = createServer(resolve);
  const timer = setTimeout(() => reject(new Error('The layer was not packed.')), CALL_BACK_MS);
  timer.unref();
  called.catch(() => {});
  try {
    await new Promise<void>((listening, refused) => {
      server.once('error', refused).listen(`/proc/self/fd/${directory}/${name}`, listening);
    });
    const done = engine.call('pack', { layer, to: `run/${name}`, most });
    done.catch(reject);
    const socket = await called;
    try {
      yield* socket;
    } finally {
      socket.destroy();
    }
    // Complete only if the spawner reports success.
    await done;
  } catch (error) {
    throw failed(error);
  } finally {
    clearTimeout(timer);
    server.close();
    closeSync(directory);
  }
}
