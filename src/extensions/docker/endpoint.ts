/** Where an engine listens, and how bytes get there. */
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { Duplex } from 'node:stream';
import { connect as connectTls } from 'node:tls';
import { SandboxerError } from '../../contract/errors.ts';

export interface TlsFiles {
  readonly ca_file?: string | undefined;
  readonly cert_file: string;
  readonly key_file: string;
}

export type Endpoint =
  | { readonly kind: 'unix'; readonly path: string }
  | { readonly kind: 'tcp'; readonly host: string; readonly port: number; readonly tls: TlsFiles | null }
  | { readonly kind: 'ssh'; readonly destination: string; readonly port: number | null };

const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|::1)$/;
/** A name that ssh cannot take for an option. */
const SSH_DESTINATION = /^(?:[A-Za-z0-9_][\w.-]*@)?[A-Za-z0-9][\w.-]*$/;

function invalid(detail: string): SandboxerError {
  return new SandboxerError('SBX_INVALID_REQUEST', detail, {
    field: 'extensions.docker.url',
    remedy: 'Write unix:///path/of.sock, tcp://host:2376 with client certificates, or ssh://user@host.',
  });
}

/** As `DOCKER_HOST` is written. Whoever reaches an engine is root on its machine: no bare TCP beyond this one. */
export function parseEndpoint(url: string, tls: TlsFiles | null): Endpoint {
  if (url.startsWith('unix://')) return { kind: 'unix', path: url.slice('unix://'.length) };
  let parsed: URL;
  try {
    parsed = new URL(url);
  } catch {
    throw invalid(`"${url}" is not the address of an engine.`);
  }
  const { protocol, hostname, port, username } = parsed;
  if (protocol === 'ssh:') {
    const destination = username === '' ? hostname : `${decodeURIComponent(username)}@${hostname}`;
    if (!SSH_DESTINATION.test(destination)) throw invalid(`ssh cannot be given "${destination}".`);
    return { kind: 'ssh', destination, port: port === '' ? null : Number(port) };
  }
  if (protocol !== 'tcp:' && protocol !== 'https:') throw invalid(`"${protocol}//" is not understood.`);
  const host = hostname.replace(/^\[|\]$/g, '');
  if (tls === null && (protocol === 'https:' || !LOOPBACK.test(host))) {
    throw invalid('An engine on another machine needs tls: cert_file, key_file and ca_file.');
  }
  return { kind: 'tcp', host, port: Number(port || (tls === null ? 2375 : 2376)), tls };
}

/** Whether directories of this machine can be those of the engine's. */
export function isLocal(endpoint: Endpoint): boolean {
  return endpoint.kind === 'unix';
}

export function showEndpoint(endpoint: Endpoint): string {
  if (endpoint.kind === 'unix') return endpoint.path;
  if (endpoint.kind === 'ssh') return `ssh://${endpoint.destination}`;
  return `tcp://${endpoint.host}:${endpoint.port}`;
}

function overSsh(destination: string, port: number | null): Duplex {
  const options = ['-T', '-o', 'BatchMode=yes', '-o', 'ConnectTimeout=10'];
  const args = [...options, ...(port === null ? [] : ['-p', String(port)]), '--', destination];
  const child = spawn('ssh', [...args, 'docker', 'system', 'dial-stdio'], {
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  const stream = Duplex.from({ readable: child.stdout, writable: child.stdin });
  child.on('error', (error) => stream.destroy(error));
  child.on('exit', (code) => {
    if (code !== 0) stream.destroy(new Error(`ssh to ${destination} ended with ${code}`));
  });
  stream.on('close', () => child.kill('SIGTERM'));
  return stream;
}

/** One connection to the engine. */
export function openConnection(endpoint: Endpoint): Duplex {
  switch (endpoint.kind) {
    case 'unix':
      return connect(endpoint.path);
    case 'ssh':
      return overSsh(endpoint.destination, endpoint.port);
    case 'tcp': {
      const { host, port, tls } = endpoint;
      if (tls === null) return connect({ host, port, noDelay: true });
      return connectTls({
        host,
        port,
        cert: readFileSync(tls.cert_file),
        key: readFileSync(tls.key_file),
        minVersion: 'TLSv1.2',
        ...(tls.ca_file === undefined ? {} : { ca: readFileSync(tls.ca_file) }),
      });
    }
  }
}
