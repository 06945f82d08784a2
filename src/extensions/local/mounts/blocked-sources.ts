/** Places of this machine that no sandbox is shown. The lists cannot be lifted. */
import type { Stats } from 'node:fs';
import { lstatSync, readdirSync, readFileSync, realpathSync } from 'node:fs';
import { homedir, userInfo } from 'node:os';
import { basename, dirname, isAbsolute, join } from 'node:path';
import { BLOCKED_IN_HOME, isBlockedByName } from './in-home.ts';
import { plain } from './mount-targets.ts';

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
  '/tmp/.X11-unix',
  '/var/backups',
  '/var/run',
  '/private/var/run',
  '/var/lib/AccountsService',
  '/var/lib/bluetooth',
  '/var/lib/buildkit',
  '/var/lib/ceph',
  '/var/lib/cloud',
  '/var/lib/consul',
  '/var/lib/containerd',
  '/var/lib/containers',
  '/var/lib/crio',
  '/var/lib/docker',
  '/var/lib/etcd',
  '/var/lib/flatpak',
  '/var/lib/gdm3',
  '/var/lib/gitlab-runner',
  '/var/lib/incus',
  '/var/lib/iwd',
  '/var/lib/jenkins',
  '/var/lib/k0s',
  '/var/lib/krb5kdc',
  '/var/lib/kubelet',
  '/var/lib/letsencrypt',
  '/var/lib/libvirt',
  '/var/lib/lxc',
  '/var/lib/lxd',
  '/var/lib/machines',
  '/var/lib/NetworkManager',
  '/var/lib/nomad',
  '/var/lib/portables',
  '/var/lib/private',
  '/var/lib/rancher',
  '/var/lib/samba',
  '/var/lib/snapd',
  '/var/lib/sss',
  '/var/lib/systemd',
  '/var/lib/tailscale',
  '/var/lib/vault',
  '/var/lib/wpa_supplicant',
  '/var/mail',
  '/var/snap',
  '/var/spool/mail',
  '/var/spool/cron',
  '/var/spool/at',
  '/var/spool/anacron',
  '/usr/local/etc',
] as const;

/** Returns the stats of the path itself; `null` where there is none. */
export function statsAt(path: string): Stats | null {
  try {
    return lstatSync(path);
  } catch {
    return null;
  }
}

/** Resolves every link, down to the deepest part that exists; the rest stays as it is written. */
export function canonicalPath(path: string): string {
  const rest: string[] = [];
  for (let at = plain(path); ; at = dirname(at)) {
    try {
      return join(realpathSync(at), ...rest);
    } catch {
      if (at === '/') return join('/', ...rest);
      // The target of a dangling link may exist tomorrow.
      if (statsAt(at)?.isSymbolicLink()) return '/';
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

function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}

/** Returns the blocked places as they are written, and the targets of those that exist. */
function blockedInHome(home: string): string[] {
  const place = canonicalPath(home);
  const names = namesIn(home);
  const all = [...BLOCKED_IN_HOME, ...names.filter(isBlockedByName)];
  const existing = all.filter((name) => names.includes(name.split('/')[0] ?? name));
  return [
    ...all.flatMap((name) => [join(plain(home), name), join(place, name)]),
    ...existing.map((name) => canonicalPath(join(home, name))),
  ];
}

export interface MountPolicy {
  /** Directories of the server: databases, keys, sockets. */
  readonly own: readonly string[];
}

export function blockedPaths({ own }: MountPolicy): string[] {
  const written = [...BLOCKED_SOURCES, ...own].map(plain);
  const paths = [...written, ...written.map(canonicalPath), ...homes().flatMap(blockedInHome)];
  return [...new Set(paths)].filter((path) => path !== '/');
}
