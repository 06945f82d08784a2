/** Addresses of git repositories: what they may look like, and which hosts may be asked. */
import { SandboxerError } from '../../contract/errors/errors.ts';

export interface GitRef {
  /** `https:` or `ssh:`, without credentials that are secret, query and fragment. */
  readonly url: string;
  readonly protocol: 'https' | 'ssh';
  readonly host: string;
  readonly port: number;
  /** The user name at the host; `null` when the address has none. */
  readonly user: string | null;
  /** A branch, tag or commit; `null` for what HEAD is. */
  readonly ref: string | null;
}

const DEFAULT_PORT = { https: 443, ssh: 22 } as const;
/** Accepts nothing that git, ssh or a shell could take for an option, a pattern or two refs. */
const REF = /^(?!.*(?:\.\.|@\{|\/\/|\.lock(?:\/|$)))[A-Za-z0-9_][A-Za-z0-9_./+@#=-]{0,254}$/;
const HOST = /^(?:\[[0-9a-f:.]+\]|[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?)$/;
const USER = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$/;
const PATH = /^\/[A-Za-z0-9_.~%+@,=/-]+$/;
const SCP_LIKE = /^([A-Za-z0-9_][\w.-]*@[A-Za-z0-9][\w.-]*):(?!\/)([^:]+)$/;

function refuse(detail: string, field: string): SandboxerError {
  return new SandboxerError('SBX_REF_REFUSED', detail, {
    field,
    creation: 'not_created',
    remedy: 'Write a repository as https://host/path.git#branch or ssh://git@host/path.git#branch.',
  });
}

function checkedRef(ref: string | null, field: string): string | null {
  if (ref === null || ref === '') return null;
  if (!REF.test(ref) || ref.endsWith('/') || ref.endsWith('.')) {
    throw refuse('The branch, tag or commit has a name that git does not allow.', field);
  }
  return ref;
}

/** Whether a text can only be meant as the address of a repository. */
export function looksLikeGit(text: string): boolean {
  return /^(?:https|ssh):\/\//i.test(text) || SCP_LIKE.test(text);
}

/** `ref` wins over the fragment of the address. */
export function parseGitRef(text: string, ref: string | null, field: string): GitRef {
  const [plain = '', fragment = ''] = text.split(/#(.*)/s, 2);
  const scp = SCP_LIKE.exec(plain);
  const url = URL.parse(scp ? `ssh://${scp[1]}/${scp[2]}` : plain);
  if (!url || (url.protocol !== 'https:' && url.protocol !== 'ssh:')) {
    throw refuse('Repositories are fetched over https and ssh alone.', field);
  }
  const protocol = url.protocol === 'https:' ? 'https' : 'ssh';
  if (url.password !== '') throw refuse('The address holds a password.', field);
  if (url.search !== '') throw refuse('The address has a query.', field);
  const host = url.hostname.toLowerCase();
  if (!HOST.test(host) || !PATH.test(url.pathname) || url.pathname.split('/').includes('..')) {
    throw refuse('The address of the repository is not one.', field);
  }
  if (url.username !== '' && !USER.test(url.username)) {
    throw refuse('The user of the address is not one.', field);
  }
  const port = url.port === '' ? DEFAULT_PORT[protocol] : Number(url.port);
  const user = url.username === '' ? null : url.username;
  const at = addressOf({ protocol, host, port });
  const shown = `${protocol}://${user === null ? '' : `${user}@`}${at}${url.pathname}`;
  return { url: shown, protocol, host, port, user, ref: checkedRef(ref ?? fragment, field) };
}

/** The host as an allowlist names it: with the port where it is not the usual one of the protocol. */
export function addressOf({ host, port, protocol }: Pick<GitRef, 'host' | 'port' | 'protocol'>): string {
  return port === DEFAULT_PORT[protocol] ? host : `${host}:${port}`;
}

/**
 * Whether an allowlist has the host. An entry is `host`, `host:port` or `*.domain`; without a port only the usual one of the
 * protocol is meant.
 */
export function allowsHost(allowed: readonly string[], { host, port, protocol }: GitRef): boolean {
  return allowed.some((entry) => {
    const [, name = '', givenPort] = /^(.*?)(?::(\d+))?$/.exec(entry.toLowerCase()) ?? [];
    if (port !== (givenPort === undefined ? DEFAULT_PORT[protocol] : Number(givenPort))) return false;
    return name.startsWith('*.') ? host.endsWith(name.slice(1)) && host !== name.slice(2) : host === name;
  });
}
