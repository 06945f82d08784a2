import { randomBytes } from 'node:crypto';
import { closeSync, mkdirSync, openSync } from 'node:fs';
import type { Socket } from 'node:net';
import { createServer } from 'node:net';
import { join } from 'node:path';
import type { Engine } from '../engine/engine.ts';
import { failed } from '../engine/failure.ts';
import type { Layout } from '../state/layout.ts';

/** A child that never calls back must not be waited for. */
const CALL_BACK_MS = 30_000;

/**
 * A layer as a tar archive: always the same bytes for the same files. The spawner packs it, because the files belong to ids
 * that this process may have no access to, and sends it to a socket in our own directory. Ends with an error when it is
 * more than `most` bytes or cannot be told in an archive.
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
  // The path of a socket is short: through its directory it always is.
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
    // Only now it is known to be whole.
    await done;
  } catch (error) {
    throw failed(error);
  } finally {
    clearTimeout(timer);
    server.close();
    closeSync(directory);
  }
}
