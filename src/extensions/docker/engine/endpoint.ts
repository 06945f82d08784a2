/** Address of an engine. */
import { SandboxerError } from '../../../contract/errors/errors.ts';

export interface TlsFiles {
  readonly ca_file?: string | undefined;
  readonly cert_file: string;
  readonly key_file: string;
}

export type Endpoint =
  | { readonly kind: 'unix'; readonly path: string }
  | { readonly kind: 'tcp'; readonly host: string; readonly port: number; readonly tls: TlsFiles | null }
  | {
      readonly kind: 'ssh';
      readonly host: string;
      readonly user: string | null;
      readonly port: number | null;
      /** Socket of the engine on that machine; `null`: the one that its `docker` command uses. */
      readonly socket: string | null;
    };

export type SshEndpoint = Extract<Endpoint, { kind: 'ssh' }>;

const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|::1)$/;
/** Names that ssh cannot take for an option. */
const SSH_HOST = /^[A-Za-z0-9_:.][\w:.-]*$/;
const SSH_USER = /^[A-Za-z0-9_.][\w.-]*$/;
const SOCKET = /^\/[\w./-]+$/;

function invalid(detail: string): SandboxerError {
  return new SandboxerError('SBX_INVALID_REQUEST', detail, {
    field: 'extensions.docker.url',
    remedy: 'Write unix:///path/of.sock, tcp://host:2376 with client certificates, or ssh://user@host.',
  });
}

function sshEndpoint({ hostname, username, port, pathname }: URL): SshEndpoint {
  const host = hostname.replace(/^\[|\]$/g, '');
  const user = username === '' ? null : decodeURIComponent(username);
  const socket = pathname === '' || pathname === '/' ? null : decodeURIComponent(pathname);
  if (!SSH_HOST.test(host)) throw invalid(`ssh cannot be given the host "${host}".`);
  if (user !== null && !SSH_USER.test(user)) throw invalid(`ssh cannot be given the user "${user}".`);
  if (socket !== null && !SOCKET.test(socket)) throw invalid(`"${socket}" is not the path of a socket.`);
  return { kind: 'ssh', host, user, port: port === '' ? null : Number(port), socket };
}

/** Parses an address in the form of `DOCKER_HOST`. Access to an engine is root on its machine: no bare TCP to another machine. */
export function parseEndpoint(url: string, tls: TlsFiles | null): Endpoint {
  if (url.startsWith('unix://')) return { kind: 'unix', path: url.slice('unix://'.length) };
  let parsed: URL;
  try {
    parsed = new URL(url);
  } catch {
    throw invalid(`"${url}" is not the address of an engine.`);
  }
  const { protocol, hostname, port } = parsed;
  if (protocol === 'ssh:') return sshEndpoint(parsed);
  if (protocol !== 'tcp:' && protocol !== 'https:') throw invalid(`"${protocol}//" is not understood.`);
  const host = hostname.replace(/^\[|\]$/g, '');
  if (tls === null && (protocol === 'https:' || !LOOPBACK.test(host))) {
    throw invalid('An engine on another machine needs tls: cert_file, key_file and ca_file.');
  }
  return { kind: 'tcp', host, port: Number(port || (tls === null ? 2375 : 2376)), tls };
}

/** Returns whether the engine sees directories of this machine. */
export function isLocal(endpoint: Endpoint): boolean {
  return endpoint.kind === 'unix';
}

export function showEndpoint(endpoint: Endpoint): string {
  if (endpoint.kind === 'unix') return endpoint.path;
  if (endpoint.kind === 'tcp') return `tcp://${endpoint.host}:${endpoint.port}`;
  const { user, host, port, socket } = endpoint;
  return `ssh://${user === null ? '' : `${user}@`}${host}${port === null ? '' : `:${port}`}${socket ?? ''}`;
}
