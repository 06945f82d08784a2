/** Server on TCP with two tenants: an attacker, and a neighbour whose exec is timed. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { removeDir, startChild, temporaryDir } from '../../tests/support/child-server.ts';
import { LIMITED } from '../local/world.ts';
import type { Target } from './attacks.ts';

const MEMORY = {
  id: 'profile.bench-memory',
  version: '1.0.0',
  extension: 'ext.memory',
  isolation: { level: 'none' },
  network: { default: 'allow' },
  ttl: { default: '1h', max: '2h' },
};

export interface AttackWorld {
  readonly target: Target;
  /** Returns the milliseconds of one exec of the neighbour. */
  exec(): Promise<number>;
  /** Returns the MiB of the server that lie in memory. */
  resident(): number;
  close(): Promise<void>;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

export async function openAttackWorld(): Promise<AttackWorld> {
  const dir = temporaryDir();
  const port = await freePort();
  const local = process.platform === 'linux' && process.getuid?.() === 0;
  const config = { listen: { tcp: `127.0.0.1:${port}` }, extensions: { local: { enabled: local } } };
  writeFileSync(join(dir, 'config.json'), JSON.stringify(config));
  const server = await startChild(join(import.meta.dirname, 'attack-server.ts'), dir, {
    SANDBOXER_LOCAL: local ? '1' : '0',
    SANDBOXER_CONFIG: join(dir, 'config.json'),
  });
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const admin = readFileSync(join(dir, 'admin.key'), 'utf8').trim();
  const call = async <T>(
    status: number,
    key: string,
    method: string,
    path: string,
    body?: unknown,
  ): Promise<T> => {
    const text = body === undefined ? undefined : JSON.stringify(body);
    const headers = {
      authorization: `Bearer ${key}`,
      ...(text === undefined
        ? {}
        : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }),
    };
    const outgoing = request({ host: '127.0.0.1', port, agent, method, path, headers });
    outgoing.end(text);
    const [response] = await once(outgoing, 'response');
    let answer = '';
    for await (const part of response.setEncoding('utf8')) answer += part;
    if (response.statusCode !== status)
      throw new Error(`${method} ${path}: ${response.statusCode} ${answer}`);
    return JSON.parse(answer || 'null') as T;
  };
  const profile = local ? LIMITED : MEMORY;
  const tenant = async (id: string) => {
    await call(201, admin, 'POST', '/v1/workspaces', { workspace_id: id, org_id: 'default' });
    const wanted = { name: id, workspace_id: id, actor: 'adm', scopes: ['read', 'sandboxes', 'profiles'] };
    const { secret } = await call<{ secret: string }>(201, admin, 'POST', '/v1/keys', wanted);
    for (const one of local ? [MEMORY, LIMITED] : [MEMORY])
      await call(201, secret, 'POST', '/v1/profiles', one);
    const made = { id: `of-${id}`, profile: profile.id };
    await call(201, secret, 'POST', '/v1/sandboxes', made);
    return secret;
  };
  const neighbour = await tenant('neighbour');
  const key = await tenant('attacker');
  return {
    target: { port, key, sandbox: 'of-attacker' },
    async exec() {
      const begun = performance.now();
      await call(200, neighbour, 'POST', '/v1/sandboxes/of-neighbour/exec', { command: ['/bin/true'] });
      return performance.now() - begun;
    },
    resident() {
      const status = readFileSync(`/proc/${server.process.pid}/status`, 'utf8');
      return Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1]) / 1024;
    },
    async close() {
      for (const id of ['neighbour', 'attacker'])
        await call(200, admin, 'DELETE', `/v1/sandboxes/of-${id}`).catch(() => {});
      agent.destroy();
      await server.stop();
      removeDir(dir);
    },
  };
}

/** Begins an attack. Resolves when it is under way, with a function that ends it and returns the counts of its answers. */
export async function begin(name: string, target: Target): Promise<() => Promise<string>> {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'attacker.ts'), name], {
    env: { ...process.env, ATTACK_TARGET: JSON.stringify(target) },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  // Listened for from the start: an attacker may end by itself before its time.
  const over = once(child, 'exit');
  let told = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    told += text;
  });
  await once(child.stdout, 'data');
  return async () => {
    child.kill('SIGTERM');
    const late = setTimeout(() => child.kill('SIGKILL'), 2_000);
    const [code, signal] = await over;
    clearTimeout(late);
    // The last of its output may arrive after its end.
    await sleep(20);
    if (signal === 'SIGKILL') return `${told.replace('ready\n', '')} (killed)`;
    if (code !== 0) throw new Error(`the attacker ${name} ended with ${code ?? signal}`);
    return told.replace('ready\n', '');
  };
}
