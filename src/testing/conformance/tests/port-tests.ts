import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import type { PortConnection } from '../../../core/ports/session.ts';
import { bytesOf } from '../bytes.ts';
import { claimTests, SkippedTest } from '../conformance-test.ts';
import { expectError } from '../expect-error.ts';
import { runShell, shellArgv, spawnSpec } from '../run-program.ts';

const test = claimTests('ports', ({ ports }) => ports);

/** Starts an echo server with any tool inside that can listen. */
const ECHO = `
P="$1"
if command -v python3 >/dev/null 2>&1; then exec python3 -c '
import socket, sys
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("127.0.0.1", int(sys.argv[1]))); s.listen(8); print("listening", flush=True)
while True:
    c, _ = s.accept()
    while True:
        d = c.recv(65536)
        if not d: break
        c.sendall(d)
    c.close()
' "$P"
elif command -v node >/dev/null 2>&1; then exec node -e '
require("net").createServer({ allowHalfOpen: true }, (c) => c.pipe(c)).listen(+process.argv[1], "127.0.0.1", () => console.log("listening"))
' "$P"
elif command -v perl >/dev/null 2>&1; then exec perl -MIO::Socket -e '
$| = 1; $s = IO::Socket::INET->new(LocalAddr => "127.0.0.1", LocalPort => $ARGV[0], Listen => 8, ReuseAddr => 1) or die;
print "listening\\n"; while ($c = $s->accept) { while (sysread($c, $d, 65536)) { syswrite($c, $d) } close $c }
' "$P"
elif command -v busybox >/dev/null 2>&1; then echo listening; exec busybox nc -ll -p "$P" -e cat
else echo none; fi`;

export const portTests = [
  test(
    'bytes go there and come back',
    async (subject) => {
      const { session } = await subject.shared();
      // A port below the range from which the kernel gives out ports.
      const port = 20_000 + Math.floor(Math.random() * 12_000);
      const server = await session.spawn(spawnSpec(shellArgv(ECHO, String(port))));
      const first = await server.output[Symbol.asyncIterator]().next();
      const line =
        first.done !== true && 'data' in first.value ? Buffer.from(first.value.data).toString() : '';
      if (line.startsWith('none')) throw new SkippedTest('There is nothing inside that could listen.');
      assert.match(line, /listening/);
      const dialled = Promise.withResolvers<PortConnection | undefined>();
      // Not every tool reports when it listens.
      await subject.eventually(async () => {
        const connection = await session.dial?.(port).catch(() => null);
        if (connection !== null) dialled.resolve(connection);
        return connection !== null;
      });
      dialled.resolve(undefined);
      const connection = await dialled.promise;
      assert.ok(connection !== undefined, 'The port inside cannot be reached.');
      const sent = randomBytes(300_000);
      const received = bytesOf(connection.readable);
      for (let at = 0; at < sent.length; at += 10_000) await connection.write(sent.subarray(at, at + 10_000));
      await connection.end();
      assert.ok((await received).equals(sent), 'Other bytes came back.');
      connection.destroy();
      await server.detach();
    },
    { shell: true },
  ),

  test(
    'a port where nothing listens is one of our errors',
    async (subject) => {
      const { session } = await subject.shared();
      assert.ok(session.dial !== undefined);
      await expectError(session.dial(1), []);
      assert.equal((await runShell(session, 'exit 0')).code, 0);
    },
    { shell: true },
  ),
];
