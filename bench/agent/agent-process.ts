/** An agent for benchmarks: an ordinary process that listens on a unix socket. */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { SpawnSpec } from '../../src/core/ports/session.ts';
import type { AgentSession } from '../../src/extensions/shared/agent-session/agent-session.ts';
import { connectAgent } from '../../src/extensions/shared/agent-session/connect-agent.ts';
import { removeDir, temporaryDir } from '../../tests/support/child-server.ts';

const ROOT = join(import.meta.dirname, '..', '..');

export interface BenchAgent {
  readonly session: AgentSession;
  stop(): Promise<void>;
}

export async function startBenchAgent(): Promise<BenchAgent> {
  execFileSync(join(ROOT, 'scripts', 'build-agent.sh'), { stdio: 'inherit' });
  const dir = temporaryDir();
  const path = join(dir, 'agent.sock');
  const user = String(process.getuid?.() ?? 0);
  const child = spawn(
    join(ROOT, 'agent', 'build', 'sandboxer-agent'),
    ['--listen', path, '--user', user, '--cwd', dir],
    { stdio: ['ignore', 'ignore', 'inherit'] },
  );
  while (!existsSync(path)) await sleep(5);
  const session = await connectAgent(path);
  return {
    session,
    async stop() {
      await session.close();
      const ended = once(child, 'exit');
      child.kill('SIGTERM');
      await ended;
      removeDir(dir);
    },
  };
}

export function program(argv: readonly string[], more: Partial<SpawnSpec> = {}): SpawnSpec {
  return {
    argv,
    env: {},
    cwd: null,
    user: null,
    timeoutSeconds: null,
    terminal: null,
    stdin: false,
    background: false,
    ...more,
  };
}

/** Runs a program and counts what it writes. */
export async function outputBytes(session: AgentSession, spec: SpawnSpec): Promise<number> {
  const process = await session.spawn(spec);
  let bytes = 0;
  for await (const chunk of process.output) if ('data' in chunk) bytes += chunk.data.length;
  const { code } = await process.exit;
  if (code !== 0) throw new Error(`${spec.argv.join(' ')} ended with ${code}`);
  return bytes;
}
