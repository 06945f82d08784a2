/** Features of this machine, found without changing it. Synchronous: the capability vector is built from them. */
import { spawnSync } from 'node:child_process';
import { accessSync, constants, existsSync, readFileSync } from 'node:fs';
import { arch, platform, release, totalmem, userInfo } from 'node:os';
import { join } from 'node:path';
import { PACKAGE_DIR, programFolder } from '../../shared/own-programs.ts';
import { seccompProfile } from '../seccomp/seccomp.ts';
import { Layout } from '../state/layout.ts';
import type { ControlGroups } from './control-groups.ts';
import { findControlGroups } from './control-groups.ts';
import { findProgram } from './find-program.ts';
import { isWeighed } from './io-scheduler.ts';
import type { Levels } from './levels.ts';
import { findLevels } from './levels.ts';
import type { LocalOptions } from './options.ts';

interface Subordinate {
  readonly firstUid: number;
  readonly uids: number;
  readonly firstGid: number;
  readonly gids: number;
}

interface Runtime {
  readonly kind: 'crun' | 'runc';
  readonly path: string;
  readonly version: string;
}

interface Binaries {
  readonly spawner: string | null;
  readonly agent: string | null;
  readonly sudo: string | null;
}

export interface HostFacts extends ControlGroups {
  readonly linux: boolean;
  readonly architecture: string;
  readonly kernel: readonly [major: number, minor: number];
  readonly root: boolean;
  readonly runtime: Runtime | null;
  /** Levels above `container`. */
  readonly levels: Levels;
  readonly binaries: Binaries;
  readonly seccomp: boolean;
  readonly userNamespaces: boolean;
  /** Without root: its range of ids, or `null` when it has no usable one. */
  readonly subordinate: Subordinate | null;
  /** The name of the server's control group below each controller. */
  readonly group: string;
  /** Path of mkfs.ext4, where disks of limited size are possible. */
  readonly diskMaker: string | null;
  /** Whether the disk's scheduler shares its time by weight, for the disk that sandboxes are on. */
  readonly ioWeighed: boolean;
  readonly hostSudo: boolean;
  readonly hardOpenFiles: number;
  readonly memoryBytes: number;
  /** Most processes of the machine at once. */
  readonly mostPids: number;
}

/** Returns whether uid 0 is the only user inside: so it is without root and without subordinate ids. */
export function hasOneUser({ root, subordinate }: HostFacts): boolean {
  return !root && subordinate === null;
}

function text(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

function may(path: string, mode: number): boolean {
  try {
    accessSync(path, mode);
    return true;
  } catch {
    return false;
  }
}

function findRuntime(wanted: string | undefined): Runtime | null {
  const path = wanted === undefined ? (findProgram('crun') ?? findProgram('runc')) : pathOf(wanted);
  if (path === null || !existsSync(path)) return null;
  const { stdout, status } = spawnSync(path, ['--version'], { encoding: 'utf8' });
  const [, kind, version] = /^(crun|runc) version\s+(\S+)/m.exec(stdout ?? '') ?? [];
  if (status !== 0 || version === undefined) return null;
  return { kind: kind as Runtime['kind'], path, version };
}

/** Returns the path of a program given by name or by path. */
function pathOf(program: string): string | null {
  return program.includes('/') ? program : findProgram(program);
}

/** Returns a range from lines `name:first:count`, whose first field is a user's name or number. */
function subordinateOf(path: string, name: string, id: number): { first: number; count: number } | null {
  for (const line of text(path).split('\n')) {
    const [who, first, count] = line.split(':');
    if (who === name || who === String(id)) return { first: Number(first), count: Number(count) };
  }
  return null;
}

/** Returns the user's name. A user may have no entry in the database: a container's often has none. */
function nameOf(uid: number): string {
  try {
    return userInfo().username;
  } catch {
    return String(uid);
  }
}

const RANGE = 65_535;

function findSubordinate(): Subordinate | null {
  const uid = process.getuid?.() ?? -1;
  const gid = process.getgid?.() ?? -1;
  const username = nameOf(uid);
  const users = subordinateOf('/etc/subuid', username, uid);
  const groups = subordinateOf('/etc/subgid', username, gid);
  if (users === null || groups === null || users.count < RANGE || groups.count < RANGE) return null;
  if (findProgram('newuidmap') === null || findProgram('newgidmap') === null) return null;
  return { firstUid: users.first, uids: RANGE, firstGid: groups.first, gids: RANGE };
}

function userNamespacesOffered(root: boolean): boolean {
  if (Number(text('/proc/sys/user/max_user_namespaces') || '0') === 0) return false;
  if (root) return true;
  if (text('/proc/sys/kernel/unprivileged_userns_clone').trim() === '0') return false;
  return text('/proc/sys/kernel/apparmor_restrict_unprivileged_userns').trim() !== '1';
}

function hardOpenFiles(): number {
  const limit = /^Max open files\s+\S+\s+(\S+)/m.exec(text('/proc/self/limits'))?.[1];
  const parsed = Number(limit);
  return Number.isFinite(parsed) && parsed > 0 ? parsed : 4096;
}

const NAMES = { spawner: 'sandboxer-spawner', agent: 'sandboxer-agent', sudo: 'sandboxer-sudo' } as const;

/** Returns the binaries. A checkout builds missing ones at their first use; a package brings them for some machines. */
function findBinaries(folder: string | undefined): Binaries {
  const place = folder ?? programFolder();
  // A binary that only its owner may read is of no use to another user: it is copied before it is run.
  const find = (name: string) => (may(join(place, name), constants.R_OK) ? join(place, name) : null);
  const build = (script: string) => {
    const path = join(PACKAGE_DIR, 'scripts', script);
    if (folder === undefined && platform() === 'linux' && existsSync(path))
      spawnSync('sh', [path], { stdio: 'ignore' });
  };
  if (find(NAMES.agent) === null) build('build-agent.sh');
  if (find(NAMES.spawner) === null || find(NAMES.sudo) === null) build('build-spawner.sh');
  return { spawner: find(NAMES.spawner), agent: find(NAMES.agent), sudo: find(NAMES.sudo) };
}

const NO_GROUPS: ControlGroups = { cgroups: 'none', controllers: [], unified: null };

export function findHostFacts(options: LocalOptions): HostFacts {
  const [major = 0, minor = 0] = release().split('.').map(Number);
  const root = process.getuid?.() === 0;
  const linux = platform() === 'linux';
  const { group } = new Layout(options.directory);
  return {
    linux,
    architecture: arch(),
    kernel: [major, minor],
    root,
    runtime: linux ? findRuntime(options.runtime) : null,
    levels: findLevels(options.directory, { root, untried: options.untriedLevels ?? false }),
    binaries: findBinaries(options.binaries),
    seccomp: seccompProfile() !== null,
    userNamespaces: linux && userNamespacesOffered(root),
    subordinate: linux && !root ? findSubordinate() : null,
    group,
    ...(options.cgroups === false ? NO_GROUPS : findControlGroups(group)),
    diskMaker: root && existsSync('/dev/loop-control') ? findProgram('mkfs.ext4') : null,
    ioWeighed: linux && isWeighed(options.directory),
    hostSudo: existsSync('/usr/bin/sudo'),
    hardOpenFiles: linux ? hardOpenFiles() : 0,
    memoryBytes: totalmem(),
    mostPids: Number(text('/proc/sys/kernel/pid_max')) || 32_768,
  };
}
