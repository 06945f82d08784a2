/**
 * Which directories of this machine may be mounted into a sandbox, and where. Each is judged twice: as it is written, and
 * as it is found through every symbolic link, down to the deepest part that exists. The lists cannot be lifted.
 */
import type { Stats } from 'node:fs';
import { lstatSync, readFileSync, realpathSync } from 'node:fs';
import { homedir, userInfo } from 'node:os';
import { basename, dirname, isAbsolute, join, normalize } from 'node:path';
import { SandboxerError } from '../../contract/errors.ts';
import type { Mount } from '../../contract/inputs.ts';

/** The machine's own secrets, devices, engines and schedules. */
export const BLOCKED_SOURCES = [
  '/etc',
  '/private/etc',
  '/proc',
  '/sys',
  '/dev',
  '/root',
  '/boot',
  '/run',
  '/var/run',
  '/private/var/run',
  '/var/lib/docker',
  '/var/lib/containerd',
  '/var/lib/containers',
  '/var/lib/crio',
  '/var/lib/kubelet',
  '/var/lib/libvirt',
  '/var/lib/lxd',
  '/var/lib/incus',
  '/var/lib/rancher',
  '/var/snap/docker',
  '/var/spool/cron',
  '/var/spool/at',
  '/var/spool/anacron',
] as const;

/** Of every home: credentials, and what a shell or a tool of the host runs. */
export const BLOCKED_IN_HOME = [
  '.aws',
  '.azure',
  '.bash_aliases',
  '.bash_login',
  '.bash_logout',
  '.bash_profile',
  '.bashrc',
  '.cargo',
  '.claude',
  '.config',
  '.docker',
  '.git-credentials',
  '.gitconfig',
  '.gnupg',
  '.kube',
  '.local/bin',
  '.local/share/keyrings',
  '.mozilla',
  '.netrc',
  '.npm',
  '.npmrc',
  '.password-store',
  '.pki',
  '.profile',
  '.pypirc',
  '.ssh',
  '.terraform.d',
  '.vault-token',
  '.zlogin',
  '.zprofile',
  '.zshenv',
  '.zshrc',
] as const;

/** Inside: what the sandbox itself stands on. */
export const RESERVED_TARGETS = [
  '/.init',
  '/bin',
  '/dev',
  '/etc',
  '/home/user/workspace',
  '/lib',
  '/lib32',
  '/lib64',
  '/libx32',
  '/opt/sandboxer',
  '/proc',
  '/run',
  '/sbin',
  '/sys',
  '/usr',
  '/var/run',
] as const;

function isWithin(path: string, directory: string): boolean {
  return path === directory || path.startsWith(directory === '/' ? '/' : `${directory}/`);
}

function plain(path: string): string {
  const normal = normalize(path);
  return normal.length > 1 ? normal.replace(/\/+$/, '') : normal;
}

function found(path: string): Stats | null {
  try {
    return lstatSync(path);
  } catch {
    return null;
  }
}

/** Through every link, down to the deepest part that exists; the rest as it is written. */
function canonicalPath(path: string): string {
  const rest: string[] = [];
  for (let at = plain(path); ; at = dirname(at)) {
    try {
      return join(realpathSync(at), ...rest);
    } catch {
      if (at === '/') return join('/', ...rest);
      // A link that leads nowhere yet may lead somewhere tomorrow.
      if (found(at)?.isSymbolicLink()) return '/';
      rest.unshift(basename(at));
    }
  }
}

function homes(): string[] {
  const found = [process.env.HOME, homedir(), userInfo().homedir];
  try {
    for (const line of readFileSync('/etc/passwd', 'utf8').split('\n')) {
      const [, , uid, , , home] = line.split(':');
      if (uid === '0' || Number(uid) >= 1000) found.push(home);
    }
  } catch {}
  return [
    ...new Set(found.filter((home) => home !== undefined && isAbsolute(home) && home !== '/')),
  ] as string[];
}

export interface MountPolicy {
  /** Directories of our own: databases, keys, sockets. */
  readonly own: readonly string[];
}

function blockedPaths({ own }: MountPolicy): string[] {
  const inHomes = homes().flatMap((home) => BLOCKED_IN_HOME.map((name) => join(home, name)));
  const written = [...BLOCKED_SOURCES, ...own, ...inHomes].map(plain);
  return [...new Set([...written, ...written.map(canonicalPath)])].filter((path) => path !== '/');
}

function refuse(index: number, part: 'source' | 'target', detail: string): SandboxerError {
  return new SandboxerError('SBX_PATH_REFUSED', detail, {
    field: `inputs.mounts[${index}].${part}`,
    backend: 'ext.local',
    creation: 'not_created',
    retryable: false,
    remedy:
      'Mount a directory that holds only what the sandbox needs; the guide on workspaces lists what is refused.',
  });
}

function requireApart(
  path: string,
  others: readonly string[],
  what: (other: string) => SandboxerError,
): void {
  const other = others.find((one) => isWithin(path, one) || isWithin(one, path));
  if (other !== undefined) throw what(other);
}

function checkedSource(source: string, index: number, blocked: readonly string[]): string {
  if (!isAbsolute(source) || source.includes('\0')) {
    throw refuse(index, 'source', 'The source of a mount is not an absolute path.');
  }
  for (const path of [plain(source), canonicalPath(source)]) {
    if (path === '/') throw refuse(index, 'source', `${source} would mount the whole machine.`);
    requireApart(path, blocked, (other) => refuse(index, 'source', `${source} reaches ${other}.`));
  }
  const place = canonicalPath(source);
  const stats = found(place);
  if (!stats?.isDirectory() && !stats?.isFile()) {
    throw refuse(index, 'source', `${source} is neither a directory nor a file of this machine.`);
  }
  return place;
}

function checkedTarget(target: string, index: number): string {
  const path = plain(target);
  if (
    !isAbsolute(target) ||
    target.includes('\0') ||
    path === '/' ||
    path === '/home' ||
    path === '/home/user'
  ) {
    throw refuse(index, 'target', 'The target of a mount is not a place of its own.');
  }
  requireApart(path, RESERVED_TARGETS, (other) => refuse(index, 'target', `${target} would cover ${other}.`));
  return path;
}

/** The mounts as they are made: sources through all links. Rejects with `SBX_PATH_REFUSED`. */
export function checkedMounts(mounts: readonly Mount[], policy: MountPolicy): Mount[] {
  if (mounts.length === 0) return [];
  const blocked = blockedPaths(policy);
  const targets: string[] = [];
  return mounts.map(({ source, target, access }, index) => {
    const place = checkedTarget(target, index);
    requireApart(place, targets, (other) => refuse(index, 'target', `${target} and ${other} overlap.`));
    targets.push(place);
    return { source: checkedSource(source, index, blocked), target: place, access };
  });
}
