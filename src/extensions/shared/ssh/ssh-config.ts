import { SandboxerError } from '../../../contract/errors/errors.ts';
import type { SshAccess } from '../../../core/ports/host-access.ts';

export interface SshTiming {
  readonly connectSeconds: number;
  /** A connection without data for three times this long is given up. */
  readonly aliveSeconds: number;
}

const NAME = /^[A-Za-z0-9_:.][A-Za-z0-9_:.-]{0,252}$/;
const USER = /^[A-Za-z0-9_.][A-Za-z0-9_.@\\-]{0,63}$/;
const FILE_NAME = /^[^\p{C}"\\$]+$/u;
const HOST_KEY = /^(?:@cert-authority )?[a-z0-9@.-]{1,64} [A-Za-z0-9+/]{1,4096}={0,2}$/;

function refuse(what: string): never {
  throw new SandboxerError('SBX_INVALID_REQUEST', what, { creation: 'not_created' });
}

/** Returns a path as a word of ssh_config. A path that could have another meaning there is refused. */
function fileName(path: string): string {
  if (!FILE_NAME.test(path)) refuse(`The file name ${JSON.stringify(path)} cannot be used for ssh.`);
  return `"${path.replaceAll('%', '%%')}"`;
}

function known(access: Omit<SshAccess, 'jumps'>): string[] {
  return access.hostKeys.map((key) => {
    const line = key
      .trim()
      .split(/\s+/)
      .slice(0, key.trim().startsWith('@') ? 3 : 2)
      .join(' ');
    if (!HOST_KEY.test(line)) refuse(`A host key of ${access.destination} is not one.`);
    return line.startsWith('@cert-authority ')
      ? line.replace('@cert-authority ', `@cert-authority ${access.destination} `)
      : `${access.destination} ${line}`;
  });
}

function block(access: Omit<SshAccess, 'jumps'>, through: string | null): string[] {
  const { destination, port, user, identityFile, certificateFile } = access;
  if (!NAME.test(destination)) refuse('The name of the host cannot be used for ssh.');
  if (user !== null && !USER.test(user)) refuse('The user of the host cannot be used for ssh.');
  return [
    `Host ${destination}`,
    `  HostKeyAlias ${destination}`,
    ...(port === null ? [] : [`  Port ${Math.trunc(port)}`]),
    ...(user === null ? [] : [`  User ${user}`]),
    ...(identityFile === null ? [] : [`  IdentityFile ${fileName(identityFile)}`, '  IdentitiesOnly yes']),
    ...(certificateFile === null ? [] : [`  CertificateFile ${fileName(certificateFile)}`]),
    ...(through === null ? [] : [`  ProxyJump ${through}`]),
  ];
}

/** Returns lines of known_hosts: of this host, and of those on the way. */
export function knownHosts(access: SshAccess): string {
  const lines = [access, ...access.jumps].flatMap(known);
  if (access.hostKeys.length === 0) refuse(`No host key of ${access.destination} is registered.`);
  return `${lines.join('\n')}\n`;
}

/**
 * Returns a whole configuration: OpenSSH uses the first value it finds, so these options come before the operator's, and no file
 * of this machine's own is read.
 */
export function sshConfig(access: SshAccess, knownHostsFile: string, timing: SshTiming): string {
  const { jumps, configFile } = access;
  const jumpBlocks = jumps.flatMap((jump, index) => block(jump, jumps[index - 1]?.destination ?? null));
  return [
    'Host *',
    '  BatchMode yes',
    '  StrictHostKeyChecking yes',
    `  UserKnownHostsFile ${fileName(knownHostsFile)}`,
    '  GlobalKnownHostsFile /dev/null',
    '  UpdateHostKeys no',
    '  CheckHostIP no',
    '  VerifyHostKeyDNS no',
    '  ForwardAgent no',
    '  ForwardX11 no',
    '  PermitLocalCommand no',
    '  Tunnel no',
    '  RequestTTY no',
    '  EscapeChar none',
    '  LogLevel ERROR',
    `  ConnectTimeout ${timing.connectSeconds}`,
    `  ServerAliveInterval ${timing.aliveSeconds}`,
    '  ServerAliveCountMax 3',
    ...block(access, jumps.at(-1)?.destination ?? null),
    ...jumpBlocks,
    ...(configFile === null ? [] : ['Match all', `  Include ${fileName(configFile)}`]),
    '',
  ].join('\n');
}
