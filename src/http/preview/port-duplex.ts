import { Duplex } from 'node:stream';
import type { PortConnection } from '../../core/ports/session.ts';

/** A port inside a sandbox as a Node stream, with back-pressure both ways. */
export function portDuplex(connection: PortConnection): Duplex {
  const chunks = connection.readable[Symbol.asyncIterator]();
  let reading = false;
  const duplex = new Duplex({
    read() {
      if (reading) return;
      reading = true;
      chunks.next().then(
        ({ value, done }) => {
          reading = false;
          duplex.push(done ? null : value);
        },
        (error: Error) => duplex.destroy(error),
      );
    },
    write(chunk: Buffer, _encoding, callback) {
      connection.write(chunk).then(() => callback(), callback);
    },
    final(callback) {
      connection.end().then(() => callback(), callback);
    },
    destroy(error, callback) {
      connection.destroy();
      callback(error);
    },
  });
  return duplex;
}
