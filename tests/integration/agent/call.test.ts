/** An agent that calls its host: a connection is always at hand, and a host that was away is found again. */
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import type { Server, Socket } from 'node:net';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { connectAgent } from '../../../src/extensions/shared/agent-session/connect-agent.ts';
import { runProgram } from '../../../src/testing/conformance/run-program.ts';

const root = join(import.meta.dirname, '..', '..', '..');
spawnSync('sh', [join(root, 'scripts', 'build-agent.sh')], { stdio: 'inherit' });
const directory = mkdtempSync(join(tmpdir(), 'sbx-call-'));
const path = join(directory, 'h.sock');
const callers: Socket[] = [];
let server: Server;

async function listen(): Promise<void> {
  server = createServer((socket) => void callers.push(socket));
  await new Promise<void>((resolve) => server.listen(path, resolve));
}

async function caller(): Promise<Socket> {
  await expect.poll(() => callers.length, { timeout: 60_000 }).toBeGreaterThan(0);
  return callers.shift() as Socket;
}

await listen();
const agent = spawn(join(root, 'agent', 'build', 'sandboxer-agent'), ['--call', path, '--user', '0'], {
  stdio: 'ignore',
});
afterAll(() => {
  agent.kill('SIGKILL');
  server.close();
  rmSync(directory, { recursive: true });
});

it('an agent has one connection waiting after each that is taken', async () => {
  const first = await connectAgent(await caller());
  const second = await connectAgent(await caller());
  expect((await runProgram(first, ['/bin/echo', 'one'])).stdout.toString()).toBe('one\n');
  expect((await runProgram(second, ['/bin/echo', 'two'])).stdout.toString()).toBe('two\n');
  await first.close();
  expect((await runProgram(second, ['/bin/echo', 'still'])).stdout.toString()).toBe('still\n');
  await expect.poll(() => callers.length, { timeout: 60_000 }).toBe(1);
  await second.close();
});

it('an agent calls again when the host was away', async () => {
  for (const socket of callers.splice(0)) socket.destroy();
  await new Promise<void>((resolve) => void server.close(() => resolve()));
  await new Promise((resolve) => setTimeout(resolve, 300));
  for (const socket of callers.splice(0)) socket.destroy();
  await listen();
  const session = await connectAgent(await caller());
  expect((await runProgram(session, ['/bin/echo', 'back'])).stdout.toString()).toBe('back\n');
  await session.close();
});
