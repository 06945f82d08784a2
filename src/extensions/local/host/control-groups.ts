/** Which control groups are ours to use, found without changing them. */
import { accessSync, constants, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export type Controller = 'memory' | 'pids' | 'cpu' | 'freezer';

export interface ControlGroups {
  readonly cgroups: 'v1' | 'v2' | 'hybrid' | 'none';
  /** Those that we may use. */
  readonly controllers: readonly Controller[];
  /** On version 2: the group below which ours is made. */
  readonly unified: string | null;
}

/** As the kernel tells them of this process. */
export interface OwnGroups {
  readonly mountinfo: string;
  readonly cgroup: string;
}

interface CgroupMount {
  readonly point: string;
  /** What of the hierarchy is to be seen there. */
  readonly root: string;
  readonly unified: boolean;
  readonly options: readonly string[];
}

const LIMITS = ['memory', 'pids', 'cpu'] as const;
const V1_CONTROLLERS = [...LIMITS, 'freezer'] as const;

function text(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

function writable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

const words = (path: string) => text(path).trim().split(/\s+/).filter(Boolean);

function mountsIn(mountinfo: string): CgroupMount[] {
  return mountinfo.split('\n').flatMap((line) => {
    const [before = '', after = ''] = line.split(' - ');
    const [type, , options = ''] = after.split(' ');
    const [, , , root, point] = before.split(' ');
    if (root === undefined || point === undefined || (type !== 'cgroup' && type !== 'cgroup2')) return [];
    return [{ point, root, unified: type === 'cgroup2', options: options.split(',') }];
  });
}

/** `''` is the unified hierarchy. */
function ownPath(cgroup: string, controller: string): string {
  for (const line of cgroup.split('\n')) {
    const [, names, ...path] = line.split(':');
    if (names?.split(',').includes(controller)) return path.join(':');
  }
  return '/';
}

/** Our own group and those above it, topmost first; only what is mounted can be named. */
function groupsAbove({ point, root }: CgroupMount, own: string): string[] {
  const prefix = root === '/' ? '' : root;
  const below = own === prefix || own.startsWith(`${prefix}/`) ? own.slice(prefix.length) : '';
  const names = below.split('/').filter(Boolean);
  // A namespace of groups tells what lies outside of it by names that lead up: nothing there is ours.
  if (names.includes('..')) return [point];
  return [point, ...names.map((_, index) => join(point, ...names.slice(0, index + 1)))];
}

function usableV1(mounts: readonly CgroupMount[], { cgroup }: OwnGroups, group: string): Controller[] {
  return V1_CONTROLLERS.filter((controller) => {
    const mount = mounts.find(({ options, unified }) => !unified && options.includes(controller));
    if (mount === undefined) return false;
    const { point } = mount;
    return [point, join(point, group), join(point, ownPath(cgroup, controller))].some(writable);
  });
}

/**
 * What could be limited below this group, or `null` when it is not ours. Processes can go there from our own, which lies
 * below it, if we may write who belongs to it. Only the root of all groups, which has no type, hands controllers on while it
 * has processes of its own.
 */
function handedOn(place: string): Controller[] | null {
  const files = ['', 'cgroup.procs', 'cgroup.subtree_control'];
  if (!files.every((file) => writable(join(place, file)))) return null;
  const isRoot = !existsSync(join(place, 'cgroup.type'));
  if (!isRoot && text(join(place, 'cgroup.type')).trim() !== 'domain') return null;
  const offered = words(join(place, 'cgroup.controllers'));
  const already = words(join(place, 'cgroup.subtree_control'));
  const free = isRoot || words(join(place, 'cgroup.procs')).length === 0;
  return LIMITS.filter((name) => already.includes(name) || (free && offered.includes(name)));
}

/** The topmost of those that hand on the most: it is there for longer than what runs in one below. */
function usableV2(places: readonly string[]): Pick<ControlGroups, 'controllers' | 'unified'> {
  const ours = places.flatMap((place) => {
    const limits = handedOn(place);
    return limits === null ? [] : [{ place, limits }];
  });
  const most = Math.max(...ours.map(({ limits }) => limits.length));
  const best = ours.find(({ limits }) => limits.length === most);
  return best === undefined
    ? { controllers: [], unified: null }
    : { controllers: [...best.limits, 'freezer'], unified: best.place };
}

const ownGroups = (): OwnGroups => ({
  mountinfo: text('/proc/self/mountinfo'),
  cgroup: text('/proc/self/cgroup'),
});

function limitsInV1({ unified, options }: CgroupMount): boolean {
  return !unified && V1_CONTROLLERS.some((controller) => options.includes(controller));
}

/** `group`: the name of ours below each controller. */
export function findControlGroups(group: string, own: OwnGroups = ownGroups()): ControlGroups {
  const mounts = mountsIn(own.mountinfo);
  const unified = mounts.find((mount) => mount.unified);
  // Of version 1 there may also be hierarchies that limit nothing, such as one for marking packets.
  if (unified === undefined ? mounts.length > 0 : mounts.some(limitsInV1)) {
    const controllers = usableV1(mounts, own, group);
    return { cgroups: unified === undefined ? 'v1' : 'hybrid', controllers, unified: null };
  }
  if (unified === undefined) return { cgroups: 'none', controllers: [], unified: null };
  return { cgroups: 'v2', ...usableV2(groupsAbove(unified, ownPath(own.cgroup, ''))) };
}

/** Wherever groups of this name may be. */
export function placesOfGroup(group: string, own: OwnGroups = ownGroups()): string[] {
  return mountsIn(own.mountinfo).flatMap((mount) => {
    const controller = mount.unified ? '' : (mount.options.find((name) => name !== 'rw') ?? '');
    return groupsAbove(mount, ownPath(own.cgroup, controller)).map((place) => join(place, group));
  });
}
