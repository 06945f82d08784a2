import { execFileSync } from 'node:child_process';
import { statSync } from 'node:fs';
import { daemonFiles } from '../../daemon/daemon-files.ts';
import type { Invocation } from '../../invocation/invocation.ts';
import { reportOf } from '../../output/print-error.ts';

export interface Check {
  readonly name: string;
  readonly status: 'ok' | 'warning' | 'failed';
  readonly detail: string;
  /** Exact remedy. */
  readonly fix: string | null;
}

const OLDEST_NODE = [22, 18] as const;

function ok(name: string, detail: string): Check {
  return { name, status: 'ok', detail, fix: null };
}

export function checkMachine(): Check[] {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  const fresh = major > OLDEST_NODE[0] || (major === OLDEST_NODE[0] && minor >= OLDEST_NODE[1]);
  const node: Check = fresh
    ? ok('node', `v${process.versions.node}`)
    : {
        name: 'node',
        status: 'failed',
        detail: `v${process.versions.node} is too old`,
        fix: `Install Node.js ${OLDEST_NODE.join('.')} or newer.`,
      };
  return [node, checkSsh()];
}

function checkSsh(): Check {
  try {
    execFileSync('ssh', ['-V'], { stdio: 'ignore' });
    return ok('ssh', 'for sandboxer ssh and for hosts');
  } catch {
    const fix =
      process.platform === 'linux' ? 'apt-get install openssh-client' : 'Install the OpenSSH client.';
    return { name: 'ssh', status: 'warning', detail: 'not found: only sandboxer ssh and hosts need it', fix };
  }
}

/** A reader of the state directory can use the sandboxes: it must belong to this user alone. */
export function checkState(env: NodeJS.ProcessEnv): Check[] {
  const { stateDir, socketPath } = daemonFiles(env);
  const checks: Check[] = [];
  for (const [name, path, mode] of [
    ['state directory', stateDir, '700'],
    ['socket', socketPath, '600'],
  ] as const) {
    const stats = statSync(path, { throwIfNoEntry: false });
    if (stats === undefined) {
      if (name === 'state directory') checks.push(ok(name, `${path} will be made`));
      continue;
    }
    const own = process.getuid === undefined || stats.uid === process.getuid();
    if (!own) {
      const fix = `chown ${process.getuid?.()} ${path}, or set SANDBOXER_STATE_DIR to a directory of yours`;
      checks.push({ name, status: 'failed', detail: `${path} belongs to user ${stats.uid}`, fix });
    } else if ((stats.mode & 0o077) !== 0) {
      const bits = (stats.mode & 0o777).toString(8);
      checks.push({
        name,
        status: 'failed',
        detail: `${path} has mode ${bits}: others reach it`,
        fix: `chmod ${mode} ${path}`,
      });
    } else checks.push(ok(name, path));
  }
  return checks;
}

/** Starts the local server when none runs. */
export async function checkServer(invocation: Invocation): Promise<Check> {
  const name = 'server';
  try {
    const client = await invocation.client();
    const version = await client.version();
    await client.sandboxes.list({ limit: 1 }).page();
    return ok(name, `${version.version} at ${client.address}`);
  } catch (error) {
    const { message, remedy } = reportOf(error);
    return { name, status: 'failed', detail: message, fix: remedy };
  }
}

function checkOf(
  extension: string,
  check: { name: string; ok: boolean; detail: string; fix: string | null },
): Check {
  const name = `${extension}: ${check.name}`;
  if (check.ok) return ok(name, check.detail);
  return { name, status: 'warning', detail: check.detail, fix: check.fix };
}

/** Checks the server's backends and profiles. One backend that works is enough. */
export async function checkBackends(invocation: Invocation): Promise<Check[]> {
  const client = await invocation.client();
  const checks: Check[] = [];
  const { items } = await client.extensions.list();
  for (const { id, health } of items) {
    const healthy = health.status === 'healthy';
    checks.push({
      name: id,
      status: healthy ? 'ok' : 'warning',
      detail: `${health.status}: ${health.detail}`,
      fix: null,
    });
    checks.push(...health.checks.map((check) => checkOf(id, check)));
  }
  if (!items.some(({ health }) => health.status === 'healthy')) {
    const fix = 'Repair one of the backends above: each check that failed says how.';
    checks.push({ name: 'backends', status: 'failed', detail: 'no backend is healthy', fix });
  }
  const { issues = [] } = await client.profiles.list();
  for (const { file, line, field, problem, remedy } of issues) {
    const place = line === null ? file : `${file}:${line}`;
    checks.push({ name: `profile ${place}`, status: 'warning', detail: `${field}: ${problem}`, fix: remedy });
  }
  return checks;
}
