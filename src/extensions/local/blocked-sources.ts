/** What of this machine no sandbox is shown. The lists cannot be lifted. */
import type { Stats } from 'node:fs';
import { lstatSync, readFileSync, realpathSync } from 'node:fs';
import { homedir, userInfo } from 'node:os';
import { basename, dirname, isAbsolute, join } from 'node:path';
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
  '/var/lib/buildkit',
  '/var/lib/cloud',
  '/var/lib/docker',
  '/var/lib/containerd',
  '/var/lib/containers',
  '/var/lib/crio',
  '/var/lib/kubelet',
  '/var/lib/libvirt',
  '/var/lib/lxd',
  '/var/lib/incus',
  '/var/lib/rancher',
  '/var/lib/systemd',
  '/var/snap/docker',
  '/var/spool/cron',
  '/var/spool/at',
  '/var/spool/anacron',
] as const;

/** Of every home: credentials, and what a shell or a tool of the host runs. */
export const BLOCKED_IN_HOME = [
  '.ansible',
  '.aws',
  '.azure',
  '.bash_aliases',
  '.bash_history',
  '.bash_login',
  '.bash_logout',
  '.bash_profile',
  '.bashrc',
  '.boto',
  '.cargo',
  '.claude',
  '.codex',
  '.composer',
  '.config',
  '.cshrc',
  '.cursor',
  '.dbus',
  '.docker',
  '.emacs.d',
  '.gem',
  '.gemini',
  '.git-credentials',
  '.gitconfig',
  '.gnupg',
  '.gradle',
  '.hgrc',
  '.inputrc',
  '.kshrc',
  '.kube',
  '.local/bin',
  '.local/share/applications',
  '.local/share/keyrings',
  '.login',
  '.m2',
  '.mozilla',
  '.my.cnf',
  '.netrc',
  '.npm',
  '.npmrc',
  '.nuget',
  '.oci',
  '.pam_environment',
  '.password-store',
  '.pgpass',
  '.pki',
  '.profile',
  '.pypirc',
  '.s3cfg',
  '.ssh',
  '.subversion',
  '.tcshrc',
  '.terraform.d',
  '.thunderbird',
  '.vault-token',
  '.vim',
  '.vimrc',
  '.vscode',
  '.vscode-server',
  '.xinitrc',
  '.xprofile',
  '.xsession',
  '.xsessionrc',
  '.yarnrc',
  '.yarnrc.yml',
  '.zlogin',
  '.zlogout',
  '.zprofile',
  '.zsh_history',
  '.zshenv',
  '.zshrc',
  'Library',
] as const;

/** Of the path itself; `null` where there is none. */
export function statsAt(path: string): Stats | null {
  try {
    return lstatSync(path);
  } catch {
    return null;
  }
}

/** Through every link, down to the deepest part that exists; the rest as it is written. */
export function canonicalPath(path: string): string {
  const rest: string[] = [];
  for (let at = plain(path); ; at = dirname(at)) {
    try {
      return join(realpathSync(at), ...rest);
    } catch {
      if (at === '/') return join('/', ...rest);
      // A link that leads nowhere yet may lead somewhere tomorrow.
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

export interface MountPolicy {
  /** Directories of our own: databases, keys, sockets. */
  readonly own: readonly string[];
}

export function blockedPaths({ own }: MountPolicy): string[] {
  const inHomes = homes().flatMap((home) => BLOCKED_IN_HOME.map((name) => join(home, name)));
  const written = [...BLOCKED_SOURCES, ...own, ...inHomes].map(plain);
  return [...new Set([...written, ...written.map(canonicalPath)])].filter((path) => path !== '/');
}
