/**
 * Decides where directories of this machine and volumes may be mounted inside. Paths are judged here as they are written, and by
 * the spawner as they resolve in the file system that the sandbox starts with.
 */
import { isAbsolute, normalize } from 'node:path';
import { SandboxerError } from '../../../contract/errors/errors.ts';

/** Places inside that the sandbox itself depends on, its secrets among them. */
export const RESERVED_PLACES = [
  '/.door',
  '/.init',
  '/dev',
  '/opt/sandboxer',
  '/proc',
  '/run',
  '/sys',
] as const;

/** Further places, where a directory of this machine would replace the programs inside, or the workspace. */
export const RESERVED_FOR_MOUNTS = [
  '/bin',
  '/etc',
  '/home/user/workspace',
  '/lib',
  '/lib32',
  '/lib64',
  '/libx32',
  '/sbin',
  '/usr',
  '/var/run',
] as const;

export interface Target {
  readonly kind: 'mount' | 'volume';
  /** Field of the request. */
  readonly field: string;
  readonly path: string;
}

export function isWithin(path: string, directory: string): boolean {
  return path === directory || path.startsWith(directory === '/' ? '/' : `${directory}/`);
}

export function plain(path: string): string {
  const normal = normalize(path);
  return normal.length > 1 ? normal.replace(/\/+$/, '') : normal;
}

/** Returns the error of a refused target. The detail has the field, too: a failed sandbox stores only the detail. */
export function refusedPlace(
  field: string,
  detail: string,
  remedy: string,
  creation: 'not_created' | 'maybe_created' = 'not_created',
): SandboxerError {
  return new SandboxerError('SBX_PATH_REFUSED', `${field}: ${detail}`, {
    field,
    backend: 'ext.local',
    creation,
    retryable: false,
    remedy,
  });
}

export const SOURCE_REMEDY =
  'Mount a directory that holds only what the sandbox needs; the guide on workspaces lists what is refused.';
export const TARGET_REMEDY =
  'Choose a place of its own, such as /mnt/data; the guide on workspaces lists what is refused.';

function checkedTarget({ kind, field, path }: Target): string {
  const place = plain(path);
  const covering = kind === 'mount' ? ['/', '/home', '/home/user'] : ['/'];
  if (!isAbsolute(path) || path.includes('\0') || covering.includes(place)) {
    throw refusedPlace(field, 'The target of a mount is not a place of its own.', TARGET_REMEDY);
  }
  const reserved = kind === 'mount' ? [...RESERVED_PLACES, ...RESERVED_FOR_MOUNTS] : RESERVED_PLACES;
  const other = reserved.find((one) => isWithin(place, one) || isWithin(one, place));
  if (other === undefined) return place;
  const does = isWithin(place, other) ? 'lies in' : 'would cover';
  throw refusedPlace(field, `${path} ${does} ${other}, which belongs to the sandbox itself.`, TARGET_REMEDY);
}

/** Returns the normalised paths. Rejects with `SBX_PATH_REFUSED` where one covers a reserved place, or another one. */
export function checkedTargets(targets: readonly Target[]): string[] {
  const places: string[] = [];
  for (const target of targets) {
    const place = checkedTarget(target);
    const other = places.find((one) => isWithin(place, one) || isWithin(one, place));
    if (other !== undefined)
      throw refusedPlace(target.field, `${target.path} and ${other} overlap.`, TARGET_REMEDY);
    places.push(place);
  }
  return places;
}

/** Formats the same rules for the spawner, which resolves the links. */
export function targetsText(targets: readonly Target[]): string {
  const lines = [
    ...RESERVED_PLACES.map((path) => `r ${path}`),
    ...RESERVED_FOR_MOUNTS.map((path) => `b ${path}`),
    ...targets.map(({ kind, field, path }) => `${kind === 'mount' ? 'm' : 'v'} ${field} ${path}`),
  ];
  return lines.map((line) => `${line}\0`).join('');
}
