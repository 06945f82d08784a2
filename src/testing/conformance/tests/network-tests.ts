import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { networkInterfaces } from 'node:os';
import { claimTests, SkippedTest } from '../conformance-test.ts';
import { runProgram, shellArgv } from '../run-program.ts';

const test = claimTests('deny_all', ({ deny_all, exec }) => deny_all && exec);

/** Tries to reach an address with every tool inside, and prints how many there were. */
const REACH = `
h="$1"; p="$2"; n=0
has() { command -v "$1" >/dev/null 2>&1 && n=$((n+1)); }
has nc && nc -w 2 "$h" "$p" </dev/null
has wget && wget -q -T 2 -t 1 -O - "http://$h:$p/"
has curl && curl -s -m 2 "http://$h:$p/"
has bash && bash -c "exec 3<>/dev/tcp/$h/$p" &
has python3 && python3 -c 'import socket,sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 2)' "$h" "$p"
has perl && perl -MIO::Socket -e 'IO::Socket::INET->new(PeerAddr => $ARGV[0], PeerPort => $ARGV[1], Timeout => 2)' "$h" "$p"
echo "ways $n"`;

export const networkTests = [
  test(
    'nothing outside can be reached',
    async (subject) => {
      const spec = { recipe: { network: { default: 'deny' as const, egress: [] } } };
      const { session, spec: made } = await subject.establish(spec);
      let reached = 0;
      const server = createServer((socket) => {
        reached += 1;
        socket.destroy();
      }).listen(0, '0.0.0.0');
      await once(server, 'listening');
      const { port } = server.address() as AddressInfo;
      const outside = Object.values(networkInterfaces()).flatMap((all) => all ?? []);
      const addresses = [
        '127.0.0.1',
        ...outside
          .filter(({ family, internal }) => family === 'IPv4' && !internal)
          .map(({ address }) => address),
      ];
      let ways = 0;
      try {
        for (const address of addresses) {
          const argv = shellArgv(REACH, address, String(port));
          const { stdout } = await runProgram(session, argv, { timeoutSeconds: 30 });
          ways += Number(/ways (\d+)/.exec(stdout.toString())?.[1] ?? 0);
        }
      } finally {
        server.close();
      }
      assert.equal(reached, 0, `The machine outside was reached ${reached} times.`);
      await subject.teardown(made);
      if (ways === 0) throw new SkippedTest('There is nothing inside that could connect.');
    },
    { shell: true },
  ),
];
