/** World of the benchmarks of ext.docker: an engine of its own, the real server on it, and the bare Engine API beside it. */
import { writeFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { join } from 'node:path';
import { removeDir, startChild, temporaryDir } from '../../tests/support/child-server.ts';
import type { Dockerd } from '../../tests/support/dockerd.ts';
import { startDockerd, whyNoDockerd } from '../../tests/support/dockerd.ts';
import { UnixClient } from '../../tests/support/unix-client.ts';
import type { Result } from '../harness.ts';
import { skipped } from '../local/world.ts';

const PROFILE = {
  id: 'profile.bench-docker',
  version: '1.0.0',
  extension: 'ext.docker',
  image: 'host',
  isolation: { level: 'container' },
  network: { default: 'deny' },
  ttl: { default: '1h', max: '2h' },
};

export interface DockerBench {
  readonly engine: Dockerd;
  create(): Promise<string>;
  exec(id: string, command: readonly string[]): Promise<{ exit: { code: number }; stdout: string }>;
  destroy(id: string): Promise<void>;
}

export async function withEngine(
  name: string,
  config: Record<string, unknown>,
  work: (bench: DockerBench) => Promise<Result[]>,
): Promise<Result[]> {
  const reason = whyNoDockerd();
  if (reason !== null) return skipped(name, reason);
  const engine = await startDockerd();
  const dir = temporaryDir();
  const docker = { enabled: true, url: `unix://${engine.socket}`, default_image: engine.image, ...config };
  writeFileSync(join(dir, 'config.json'), JSON.stringify({ extensions: { docker } }));
  const server = await startChild(join(import.meta.dirname, '..', 'local', 'local-server.ts'), dir, {
    SANDBOXER_DOCKER: '1',
    SANDBOXER_CONFIG: join(dir, 'config.json'),
  });
  const client = new UnixClient(server.socketPath, 1);
  try {
    await client.expect(201, 'POST', '/v1/profiles', PROFILE);
    return await work({
      engine,
      async create() {
        const body = { profile: PROFILE.id };
        return (await client.expect<{ sandbox_id: string }>(201, 'POST', '/v1/sandboxes', body)).sandbox_id;
      },
      exec: (id, command) => client.expect(200, 'POST', `/v1/sandboxes/${id}/exec`, { command }),
      async destroy(id) {
        await client.expect(200, 'DELETE', `/v1/sandboxes/${id}`);
      },
    });
  } finally {
    client.close();
    await server.stop();
    await engine.close();
    removeDir(dir);
  }
}

/** Calls the bare Engine API over one kept connection. */
export class BareEngine {
  readonly #agent = new Agent({ keepAlive: true });
  readonly #engine: Dockerd;

  constructor(engine: Dockerd) {
    this.#engine = engine;
  }

  async call(method: string, path: string, body?: object): Promise<Record<string, unknown>> {
    const text = body === undefined ? '' : JSON.stringify(body);
    return await new Promise((resolve, reject) => {
      const outgoing = request(
        {
          socketPath: this.#engine.socket,
          agent: this.#agent,
          method,
          path: `/v1.41${path}`,
          headers: { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) },
        },
        (answer) => {
          const parts: Buffer[] = [];
          answer.on('data', (part: Buffer) => parts.push(part));
          answer.on('end', () => {
            const said = Buffer.concat(parts).toString();
            if ((answer.statusCode ?? 500) >= 400) reject(new Error(`${method} ${path}: ${said}`));
            else resolve(said.startsWith('{') ? JSON.parse(said) : { said });
          });
        },
      );
      outgoing.on('error', reject);
      outgoing.end(text);
    });
  }

  /** Creates a container with the same limits as ours, and a program that waits. */
  async create(): Promise<string> {
    const { Id } = await this.call('POST', '/containers/create', {
      Image: this.#engine.image,
      Cmd: ['sleep', '600'],
      HostConfig: { NetworkMode: 'none', CapDrop: ['ALL'], SecurityOpt: ['no-new-privileges:true'] },
    });
    await this.call('POST', `/containers/${Id}/start`);
    return String(Id);
  }

  async exec(id: string, command: readonly string[]): Promise<void> {
    const body = { AttachStdout: true, AttachStderr: true, Cmd: command };
    const { Id } = await this.call('POST', `/containers/${id}/exec`, body);
    await this.call('POST', `/exec/${Id}/start`, { Detach: false, Tty: false });
    const { ExitCode } = await this.call('GET', `/exec/${Id}/json`);
    if (ExitCode !== 0) throw new Error(`it ended with ${ExitCode}`);
  }

  async remove(id: string): Promise<void> {
    await this.call('DELETE', `/containers/${id}?force=true`);
  }

  close(): void {
    this.#agent.destroy();
  }
}
