/** Finds the control groups that the server may use, without changing them. */
import { accessSync, constants, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export type Controller = 'memory' | 'pids' | 'cpu' | 'freezer';

export interface ControlGroups {
  readonly cgroups: 'v1' | 'v2' | 'hybrid' | 'none';
  /** The controllers that the server may use. */
  readonly controllers: readonly Controller[];
  /** On version 2: the group below which the server's group is made. */
  readonly unified: string | null;
}

/** The groups of this process, as the kernel lists them. */
export interface OwnGroups {
  readonly mountinfo: string;
  readonly cgroup: string;
}

interface CgroupMount {
  readonly point: string;
  /** The part of the hierarchy that is visible there. */
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

/** Returns the own path in a hierarchy; `''` is the unified one. */
function ownPath(cgroup: string, controller: string): string {
  for (const line of cgroup.split('\n')) {
    const [, names, ...path] = line.split(':');
    if (names?.split(',').includes(controller)) return path.join(':');
  }
  return '/';
}

/** Returns this process's group and those above it, topmost first; only mounted ones have a path. */
function groupsAbove({ point, root }: CgroupMount, own: string): string[] {
  const prefix = root === '/' ? '' : root;
  const below = own === prefix || own.startsWith(`${prefix}/`) ? own.slice(prefix.length) : '';
  const names = below.split('/').filter(Boolean);
  // A namespace of groups shows groups outside of it with `..`: those are not delegated.
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
 * Returns the controllers that could be limited below this group, or `null` when it is not delegated. Processes can move there
 * from the own group, which lies below it, if its `cgroup.procs` is writable. Only the root of all groups, which has no type,
 * passes controllers on while it has processes of its own.
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

/** Returns the topmost of the groups that pass on the most controllers: it exists longer than the services below it. */
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

/** Finds the usable groups. `group`: the name of the server's group below each controller. */
export function findControlGroups(group: string, own: OwnGroups = ownGroups()): ControlGroups {
  const mounts = mountsIn(own.mountinfo);
  const unified = mounts.find((mount) => mount.unified);
  // Version 1 may also have hierarchies that limit nothing, such as one for marking packets.
  if (unified === undefined ? mounts.length > 0 : mounts.some(limitsInV1)) {
    const controllers = usableV1(mounts, own, group);
    return { cgroups: unified === undefined ? 'v1' : 'hybrid', controllers, unified: null };
  }
  if (unified === undefined) return { cgroups: 'none', controllers: [], unified: null };
  return { cgroups: 'v2', ...usableV2(groupsAbove(unified, ownPath(own.cgroup, ''))) };
}

/** Returns all places where groups of this name may be. */
export function placesOfGroup(group: string, own: OwnGroups = ownGroups()): string[] {
  return mountsIn(own.mountinfo).flatMap((mount) => {
    const controller = mount.unified ? '' : (mount.options.find((name) => name !== 'rw') ?? '');
    return groupsAbove(mount, ownPath(own.cgroup, controller)).map((place) => join(place, group));
  });
}
