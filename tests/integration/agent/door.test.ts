/** The door that agents call: who else calls is not answered, and costs the server little. */
import type { ChildProcess } from 'node:child_process';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeEach, expect, it } from 'vitest';
import type { AgentSession } from '../../../src/extensions/shared/agent-session/agent-session.ts';
import { connectAgent } from '../../../src/extensions/shared/agent-session/connect-agent.ts';
import { AgentDoor, DOOR_SOCKET } from '../../../src/extensions/shared/channel/agent-door.ts';
import { runProgram } from '../../../src/testing/conformance/run-program.ts';
import { buildDoorCaller } from '../../support/door-caller.ts';
import { agentBinary } from './running-agent.ts';

const CALLS = 60_000;
const WITHIN_MS = 20_000;
const { signal } = new AbortController();
const directory = mkdtempSync(join(tmpdir(), 'sbx-door-'));
const caller = buildDoorCaller(directory);
let base: string;
let door: AgentDoor;
let agent: ChildProcess | null = null;

async function openDoor(): Promise<AgentDoor> {
  return await AgentDoor.open(base, 'door', { backend: 'ext.test', sharedKernel: true });
}

function startAgent(): void {
  const user = String(process.getuid?.() ?? 0);
  const args = ['--call', join(door.directory, DOOR_SOCKET), '--user', user];
  agent = spawn(agentBinary(), args, { stdio: 'ignore' });
}

async function answered(): Promise<AgentSession> {
  return await connectAgent(await door.take(signal, WITHIN_MS));
}

async function tokenOf(session: AgentSession): Promise<string> {
  const { stdout } = await runProgram(session, ['/bin/sh', '-c', 'echo $TOKEN'], {
    env: { TOKEN: 'secret' },
  });
  return stdout.toString();
}

/** Calls as any program of this user can: how many were taken, and how many bytes they were sent. */
async function impostor(count: number, path = join(door.directory, DOOR_SOCKET)): Promise<string> {
  return (await promisify(execFile)(caller, [path, String(count)])).stdout.trim();
}

async function delayDuring(work: () => Promise<void>): Promise<number> {
  const delay = monitorEventLoopDelay({ resolution: 2 });
  delay.enable();
  await work();
  delay.disable();
  return delay.percentile(99) / 1e6;
}

beforeEach(async () => {
  base = mkdtempSync(join(directory, 'base-'));
  door = await openDoor();
});
afterEach(() => {
  agent?.kill('SIGKILL');
  agent = null;
  door.remove();
});
afterAll(() => rmSync(directory, { recursive: true }));

it('an impostor that calls after the agent is neither greeted nor sent anything', async () => {
  startAgent();
  await expect.poll(() => door.hasCaller, { timeout: WITHIN_MS }).toBe(true);
  expect(await impostor(5)).toBe('0 0');
  for (let session = 0; session < 3; session++) {
    const living = await answered();
    expect(await impostor(5)).toBe('0 0');
    expect(await tokenOf(living)).toBe('secret\n');
    await living.close();
  }
});

it('a door of an earlier server is found again by its agent, and by no other', async () => {
  startAgent();
  await (await answered()).close();
  door.close();
  door = await openDoor();
  expect(await impostor(5)).toBe('0 0');
  expect(await tokenOf(await answered())).toBe('secret\n');
  expect(await impostor(5)).toBe('0 0');
});

it('makeReachable: the agent of the next start finds the door by its path', async () => {
  startAgent();
  await (await answered()).close();
  agent?.kill('SIGKILL');
  await once(agent as ChildProcess, 'exit');
  door.makeReachable();
  startAgent();
  expect(await tokenOf(await answered())).toBe('secret\n');
  expect(await impostor(5)).toBe('0 0');
});

it('an agent without its directory ends at once', async () => {
  startAgent();
  await (await answered()).close();
  const late = spawn(agentBinary(), ['--call', join(door.directory, DOOR_SOCKET)], { stdio: 'ignore' });
  expect(await once(late, 'exit')).toEqual([1, null]);
});

it('remove: leaves neither the shown nor the held directory', async () => {
  startAgent();
  await (await answered()).close();
  expect(existsSync(`${door.directory}.held`)).toBe(true);
  door.remove();
  expect([door.directory, `${door.directory}.held`].filter(existsSync)).toEqual([]);
});

it('a flood of callers costs the server no more than a few calls', async () => {
  startAgent();
  const living = await answered();
  const idle = await delayDuring(async () => void (await sleep(1_000)));
  const flooded = await delayDuring(async () => expect(await impostor(CALLS)).toBe('0 0'));
  expect(flooded).toBeLessThan(Math.max(50, 4 * idle));
  expect(await tokenOf(living)).toBe('secret\n');
});

it('a flood from the first process itself is turned away by the kernel', { timeout: 60_000 }, async () => {
  const inner = dirname(join(door.directory, DOOR_SOCKET));
  const flood = spawn(caller, ['--through', inner, 'h.sock', String(CALLS)], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  let said = '';
  flood.stdout?.on('data', (chunk) => {
    said += chunk;
  });
  await expect.poll(() => said, { timeout: WITHIN_MS }).toContain('open');
  const ended = once(flood, 'exit');
  const idle = await delayDuring(async () => void (await sleep(1_000)));
  const began = performance.now();
  const flooded = await delayDuring(async () => {
    flood.stdin?.write('go\n');
    await ended;
  });
  const seconds = (performance.now() - began) / 1_000;
  const [taken = CALLS] = (said.split('\n')[1] ?? '').split(' ').map(Number);
  // Per second and socket: 64 calls, and what the kernel had queued behind them.
  expect(taken).toBeLessThanOrEqual(200 * (seconds + 1));
  expect(flooded).toBeLessThan(Math.max(50, 4 * idle));
});

it('take: waits for no more sessions than an agent could serve', async () => {
  const abort = new AbortController();
  const waiting = Array.from({ length: 4096 }, () => door.take(abort.signal, WITHIN_MS).catch(() => null));
  await expect(door.take(signal, WITHIN_MS)).rejects.toMatchObject({ code: 'SBX_EXTENSION_FAILED' });
  abort.abort();
  await Promise.all(waiting);
});
