/** An agent under test: an ordinary process, or PID 1 of namespaces of its own. */
import type { ChildProcess } from 'node:child_process';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { AgentSession } from '../../../src/extensions/shared/agent-session/agent-session.ts';
import type { ConnectAgentOptions } from '../../../src/extensions/shared/agent-session/connect-agent.ts';
import { connectAgent } from '../../../src/extensions/shared/agent-session/connect-agent.ts';

const ROOT = join(import.meta.dirname, '..', '..', '..');

export const isRoot = process.getuid?.() === 0;

/** Builds it when its sources are newer. */
export function agentBinary(sanitized = false): string {
  execFileSync(join(ROOT, 'scripts', 'build-agent.sh'), sanitized ? ['--sanitize'] : [], {
    stdio: 'inherit',
  });
  return join(ROOT, 'agent', 'build', sanitized ? 'sandboxer-agent-sanitized' : 'sandboxer-agent');
}

export interface StartOptions {
  readonly args?: readonly string[];
  /** What runs the agent, such as `setpriv`; the agent and its arguments are appended. */
  readonly wrapper?: readonly string[];
  readonly sanitized?: boolean;
  readonly env?: NodeJS.ProcessEnv;
}

export class RunningAgent {
  readonly dir: string;
  readonly work: string;
  readonly socketPath: string;
  readonly process: ChildProcess;
  readonly #sessions: AgentSession[] = [];
  stderr = '';

  constructor(dir: string, child: ChildProcess) {
    this.dir = dir;
    this.work = join(dir, 'work');
    this.socketPath = join(dir, 'agent.sock');
    this.process = child;
    child.stderr?.on('data', (chunk) => {
      this.stderr += chunk;
    });
  }

  async connect(options: ConnectAgentOptions = {}): Promise<AgentSession> {
    const session = await connectAgent(this.socketPath, options);
    this.#sessions.push(session);
    return session;
  }

  get alive(): boolean {
    return this.process.exitCode === null && this.process.signalCode === null;
  }

  /** The agent itself, also where `unshare` stands before it. */
  get pid(): number {
    const own = this.process.pid ?? 0;
    if (!this.process.spawnfile.endsWith('unshare')) return own;
    const inner = Number(readFileSync(`/proc/${own}/task/${own}/children`, 'latin1').trim());
    return inner > 0 ? inner : own;
  }

  get openFiles(): number {
    return readdirSync(`/proc/${this.pid}/fd`).length;
  }

  get residentKb(): number {
    const status = readFileSync(`/proc/${this.pid}/status`, 'utf8');
    return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]);
  }

  /** Everything below it, in whatever state. */
  descendants(): { pid: number; state: string }[] {
    const all = readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .flatMap((name) => {
        try {
          const text = readFileSync(`/proc/${name}/stat`, 'latin1');
          const [state = '', parent] = text.slice(text.lastIndexOf(')') + 2).split(' ');
          return [{ pid: Number(name), parent: Number(parent), state }];
        } catch {
          return [];
        }
      });
    const below = new Set([this.pid]);
    for (let grown = true; grown; ) {
      grown = false;
      for (const one of all) {
        if (below.has(one.pid) || !below.has(one.parent)) continue;
        below.add(one.pid);
        grown = true;
      }
    }
    return all.filter(({ pid }) => below.has(pid) && pid !== this.pid);
  }

  async stop(): Promise<void> {
    for (const session of this.#sessions.splice(0)) await session.close();
    if (this.alive) {
      const ended = once(this.process, 'exit');
      process.kill(this.pid, 'SIGTERM');
      const late = setTimeout(() => process.kill(this.pid, 'SIGKILL'), 30_000);
      await ended;
      clearTimeout(late);
    }
    rmSync(this.dir, { recursive: true, force: true });
  }
}

function makeDir(): string {
  const dir = mkdtempSync(join(tmpdir(), 'sandboxer-agent-'));
  chmodSync(dir, 0o777);
  execFileSync('mkdir', ['-m', '0777', join(dir, 'work')]);
  return dir;
}

async function listening(agent: RunningAgent): Promise<void> {
  for (const endsAt = Date.now() + 60_000; agent.alive && Date.now() < endsAt; ) {
    if (existsSync(agent.socketPath)) return;
    await sleep(5);
  }
  throw new Error(`The agent did not start: ${agent.stderr}`);
}

/** Listens on a path. As root it acts as root, unless the arguments name a user. */
export async function startAgent(options: StartOptions = {}): Promise<RunningAgent> {
  const dir = makeDir();
  const { args = ['--user', String(process.getuid?.() ?? 0)], wrapper = [], sanitized = false } = options;
  const work = join(dir, 'work');
  const [program = '', ...rest] = [
    ...wrapper,
    agentBinary(sanitized),
    ...['--listen', join(dir, 'agent.sock'), '--cwd', work, ...args],
  ];
  const child = spawn(program, rest, {
    stdio: ['ignore', 'inherit', 'pipe'],
    env: { ...process.env, ASAN_OPTIONS: 'detect_leaks=0', ...options.env },
  });
  const agent = new RunningAgent(dir, child);
  await listening(agent);
  return agent;
}

/** Whether namespaces can be made here. */
export function canUnshare(): boolean {
  return isRoot && spawnSync('unshare', ['-m', '-p', '-f', '-n', 'true']).status === 0;
}

/** As PID 1 with the listening socket as fd 3, in its own pid, network and mount namespaces with a /tmp of its own. */
export async function startInit(args: readonly string[] = []): Promise<RunningAgent> {
  const dir = makeDir();
  const path = join(dir, 'agent.sock');
  const server = createServer();
  server.listen(`${path}.new`);
  await once(server, 'listening');
  const agent = agentBinary();
  // A checkout below /tmp would vanish under the new one: the agent is started from a second name.
  const script = `mount --bind ${JSON.stringify(dirname(agent))} /mnt && mount -t tmpfs -o mode=1777 tmpfs /tmp && mkdir -m 0777 /tmp/home && exec "$@"`;
  const child = spawn(
    'unshare',
    [
      ...['--mount', '--pid', '--net', '--ipc', '--uts', '--fork', '--mount-proc', '--kill-child'],
      ...['sh', '-c', script, 'sh', join('/mnt', basename(agent)), '--init', '--cwd', '/tmp/home', ...args],
    ],
    { stdio: ['ignore', 'inherit', 'pipe', (server as unknown as { _handle: { fd: number } })._handle.fd] },
  );
  // The agent holds it now: closing ours removes only the first name.
  renameSync(`${path}.new`, path);
  server.close();
  return new RunningAgent(dir, child);
}
