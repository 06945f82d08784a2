/**
 * Decides which directories of this machine may be mounted into a sandbox. Each is judged as it is written, and as it is found
 * through every symbolic link, down to the deepest part that exists; before every start of the sandbox it is opened, and the
 * opened directory is judged.
 */
import type { BigIntStats } from 'node:fs';
import { closeSync, constants, fstatSync, openSync, readlinkSync, statfsSync, statSync } from 'node:fs';
import { dirname, isAbsolute } from 'node:path';
import type { SandboxerError } from '../../../contract/errors/errors.ts';
import type { Mount } from '../../../contract/profiles/inputs.ts';
import type { MountPolicy } from './blocked-sources.ts';
import { blockedPaths, canonicalPath, statsAt } from './blocked-sources.ts';
import { isWithin, plain, refusedPlace, SOURCE_REMEDY } from './mount-targets.ts';

function refuse(index: number, detail: string): SandboxerError {
  return refusedPlace(`inputs.mounts[${index}].source`, detail, SOURCE_REMEDY);
}

function requireUnblocked(path: string, source: string, index: number, blocked: readonly string[]): void {
  if (path === '/') throw refuse(index, `${source} would mount the whole machine.`);
  const other = blocked.find((one) => isWithin(path, one) || isWithin(one, path));
  if (other !== undefined) throw refuse(index, `${source} reaches ${other}.`);
}

function checkedSource(source: string, index: number, blocked: readonly string[]): string {
  if (!isAbsolute(source) || source.includes('\0')) {
    throw refuse(index, 'The source of a mount is not an absolute path.');
  }
  const place = canonicalPath(source);
  for (const path of [plain(source), place]) requireUnblocked(path, source, index, blocked);
  const stats = statsAt(place);
  if (!stats?.isDirectory() && !stats?.isFile()) {
    throw refuse(index, `${source} is neither a directory nor a file of this machine.`);
  }
  return place;
}

/** Returns the mounts with sources resolved through all links; targets are judged apart. Rejects with `SBX_PATH_REFUSED`. */
export function checkedMounts(mounts: readonly Mount[], policy: MountPolicy): Mount[] {
  if (mounts.length === 0) return [];
  const blocked = blockedPaths(policy);
  return mounts.map(({ source, target, access }, index) => {
    const held = holdSource(checkedSource(source, index, blocked), index, policy);
    held.close();
    return { source: held.path, target: plain(target), access };
  });
}

/** An open source: the same directory or file, whatever happens to its name. */
export interface HeldSource {
  readonly path: string;
  readonly device: bigint;
  readonly inode: bigint;
  close(): void;
}

/** The value of Linux on all processors; Node does not export it. */
const O_PATH = 0o10000000;

/** File systems that show the machine itself, wherever they are mounted. */
const OF_THE_KERNEL = new Set([
  0x9fa0, // proc
  0x62656572, // sysfs
  0x27e0eb, // cgroup
  0x63677270, // cgroup2
  0x1cd1, // devpts
  0x64626720, // debugfs
  0x74726163, // tracefs
  0x73636673, // securityfs
  0x62656570, // configfs
  0xcafe4a11, // bpf
  0x6165676c, // pstore
  0xde5e81e4, // efivarfs
  0x42494e4d, // binfmt_misc
  0x6e736673, // nsfs
]);

/** Opens the file or directory at a path without any link in it, unjudged. */
export function holdPlace(path: string): HeldSource {
  const fd = openSync(path, O_PATH | constants.O_NOFOLLOW);
  const { dev: device, ino: inode } = fstatSync(fd, { bigint: true });
  return { path, device, inode, close: () => closeSync(fd) };
}

function sameThing(one: BigIntStats, other: BigIntStats): boolean {
  return one.dev === other.dev && one.ino === other.ino;
}

function statsOf(path: string): BigIntStats | undefined {
  try {
    return statSync(path, { bigint: true, throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}

/** Returns a blocked directory that is mounted a second time and found here under another name. */
function blockedAlias(path: string, blocked: readonly string[]): string | undefined {
  const known = blocked.map((one) => [one, statsOf(one)] as const);
  for (let at = path; at !== '/'; at = dirname(at)) {
    const stats = statsOf(at);
    const alias = stats && known.find(([, other]) => other && sameThing(stats, other));
    if (alias) return alias[0];
  }
  return undefined;
}

/**
 * Opens a source that was allowed before, and judges the opened file: links may have been put in its place since. Rejects with
 * `SBX_PATH_REFUSED`.
 */
export function holdSource(source: string, index: number, policy: MountPolicy): HeldSource {
  let fd: number;
  try {
    fd = openSync(source, O_PATH | constants.O_NOFOLLOW);
  } catch {
    throw refuse(index, `${source} is not there any more.`);
  }
  try {
    const opened = `/proc/self/fd/${fd}`;
    const path = readlinkSync(opened);
    if (path !== source) throw refuse(index, `${source} is not what it was: it leads to ${path} now.`);
    const blocked = blockedPaths(policy);
    requireUnblocked(path, source, index, blocked);
    const stats = fstatSync(fd, { bigint: true });
    if (!stats.isDirectory() && !stats.isFile())
      throw refuse(index, `${source} is neither a directory nor a file of this machine.`);
    if (OF_THE_KERNEL.has(statfsSync(opened).type))
      throw refuse(index, `${source} is a file system of the kernel.`);
    const alias = blockedAlias(path, blocked);
    if (alias !== undefined) throw refuse(index, `${source} is ${alias} under another name.`);
    return { path, device: stats.dev, inode: stats.ino, close: () => closeSync(fd) };
  } catch (error) {
    closeSync(fd);
    throw error;
  }
}
