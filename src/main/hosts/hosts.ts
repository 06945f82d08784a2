import { spawn } from 'node:child_process';
import type { HostSsh } from '../../contract/extensions/host.ts';
import type { HostPort, HostRecord, ProbeResult } from '../../core/hosts/host.ts';
import type { PlacementHost } from '../../core/ports/extension.ts';
import type { SshAccess } from '../../core/ports/host-access.ts';
import { hostFactsScript, hostFiguresScript } from '../../extensions/shared/ssh/host-facts-script.ts';
import { SshHosts } from '../../extensions/shared/ssh/ssh-hosts.ts';

/** Sources of values that a registration only names: a tunnel's configuration, a certificate. */
export interface AccessSources {
  tunnelConfig(name: string): Promise<string>;
  certificate(hostId: string): Promise<{ identityFile: string; certificateFile: string }>;
}

const PROBE_TIMEOUT_MS = 45_000;
const FACTS_BYTES = 1_048_576;

type Hop = Omit<HostSsh, 'jump' | 'tunnel' | 'identity'>;

function hopOf(hop: Hop): Omit<SshAccess, 'jumps'> {
  return {
    destination: hop.destination,
    port: hop.port ?? null,
    user: hop.user ?? null,
    hostKeys: hop.host_keys,
    identityFile: hop.identity_file ?? null,
    certificateFile: hop.certificate_file ?? null,
    configFile: null,
  };
}

/** Reaches the registered hosts over ssh. */
export class ReachedHosts implements HostPort {
  readonly #sources: AccessSources;
  readonly #directory: string;
  readonly #ssh: SshHosts;

  /** `directory`: place of our files on this machine; the disk it lies on is the one that counts. */
  constructor(sources: AccessSources, directory: string, ssh = new SshHosts()) {
    this.#sources = sources;
    this.#directory = directory;
    this.#ssh = ssh;
  }

  async reach({ id, spec }: HostRecord): Promise<PlacementHost> {
    if (spec.ssh === null) return { id, labels: spec.labels, ssh: null };
    const { jump, tunnel, identity } = spec.ssh;
    const access: SshAccess = {
      ...hopOf(spec.ssh),
      jumps: jump.map(hopOf),
      ...(identity === 'ops-warden' && (await this.#sources.certificate(id))),
      ...(tunnel !== undefined && { configFile: await this.#sources.tunnelConfig(tunnel), tunnel }),
    };
    return { id, labels: spec.labels, ssh: access };
  }

  async probe(host: HostRecord, signal: AbortSignal): Promise<ProbeResult> {
    try {
      if (host.spec.ssh === null) return await this.#probeHere(signal);
      const { id, ssh } = await this.reach(host);
      const connection = this.#ssh.get(id, ssh as SshAccess);
      const options = { signal, timeoutMs: PROBE_TIMEOUT_MS, creation: 'not_created' } as const;
      await connection.run(['true'], options);
      const startedAt = performance.now();
      const { code } = await connection.run(['true'], options);
      const latencyMs = Math.round((performance.now() - startedAt) * 10) / 10;
      if (code !== 0) return { ok: false, detail: `its shell answers with ${code}` };
      const { stdout } = await connection.run(['sh', '-c', hostFiguresScript], options);
      return { ok: true, latencyMs, detail: 'It answers.', facts: stdout.toString('utf8') };
    } catch (error) {
      return { ok: false, detail: error instanceof Error ? error.message : 'it could not be reached' };
    }
  }

  async #probeHere(signal: AbortSignal): Promise<ProbeResult> {
    const startedAt = performance.now();
    const facts = await runHere(['sh', '-c', hostFiguresScript], this.#directory, signal);
    const latencyMs = Math.round((performance.now() - startedAt) * 10) / 10;
    return { ok: true, latencyMs, detail: 'The machine of the server.', facts };
  }

  async facts(host: HostRecord, owner: string, signal: AbortSignal): Promise<string> {
    const argv = ['sh', '-c', hostFactsScript, 'sh', owner] as const;
    if (host.spec.ssh === null) return await runHere(argv, this.#directory, signal);
    const { id, ssh } = await this.reach(host);
    const result = await this.#ssh.get(id, ssh as SshAccess).run(argv, {
      signal,
      timeoutMs: PROBE_TIMEOUT_MS,
      maxOutputBytes: FACTS_BYTES,
      creation: 'not_created',
    });
    return result.stdout.toString('utf8');
  }

  async close(): Promise<void> {
    await this.#ssh.close();
  }
}

function runHere([program, ...args]: readonly string[], cwd: string, signal: AbortSignal): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(program as string, args, { cwd, stdio: ['ignore', 'pipe', 'ignore'], signal });
    let text = '';
    child.stdout.on('data', (chunk: Buffer) => {
      if (text.length < FACTS_BYTES) text += chunk.toString('utf8');
    });
    child.once('error', reject).once('close', () => resolve(text));
  });
}
