/**
 * Runs the stub as a process of its own: `SANDBOXER_STUB_CONFIG` holds its configuration, the first line of output its address.
 */
import { StubServer, StubServerConfig } from './stub-server.ts';

const { SANDBOXER_STUB_CONFIG: given, SANDBOXER_STUB_TETHERED: tethered } = process.env;
delete process.env.SANDBOXER_STUB_CONFIG;
const server = new StubServer(StubServerConfig.parse(JSON.parse(given ?? '{}')));

let stopping = false;
async function stop(): Promise<void> {
  if (stopping) return;
  stopping = true;
  await server.stop();
  process.exit(0);
}
process.on('SIGTERM', () => void stop());
process.on('SIGINT', () => void stop());
// The starting process holds the other end of standard input: the stub ends when that closes.
if (tethered === '1') process.stdin.once('close', () => void stop()).resume();

process.stdout.write(`${JSON.stringify({ url: await server.start() })}\n`);
