/** Fields that an older compose does not know; the newest of each generation knows every emitted field. */
import type { Tree } from '../yaml/compose-yaml.ts';
import { isTree } from '../yaml/compose-yaml.ts';

interface NewerField {
  /** Path from the service; `*` stands for any name or number. */
  readonly path: string;
  /** The first version of compose that knows the field. */
  readonly since: string;
  /** `dropped`: the service works without it, or gets it later. `refused`: it would be another service. */
  readonly otherwise: 'dropped' | 'refused';
  readonly remedy?: string;
}

const refused = (path: string, since: string, remedy?: string): NewerField => ({
  path,
  since,
  otherwise: 'refused',
  ...(remedy !== undefined && { remedy }),
});
const dropped = (path: string, since: string): NewerField => ({ path, since, otherwise: 'dropped' });

const NEWER_FIELDS: readonly NewerField[] = [
  dropped('healthcheck.start_interval', '2.20.2'),
  dropped('build.no_cache', '2.0'),
  dropped('build.pull', '2.0'),
  refused('build.additional_contexts', '2.17.0'),
  refused('build.dockerfile_inline', '2.17.0', 'Write the Dockerfile into the repository.'),
  refused('build.entitlements', '2.27.1'),
  refused('build.platforms', '2.0', 'Use "platform" of the service.'),
  refused('build.privileged', '2.15.0'),
  refused('build.secrets', '2.0'),
  refused('build.ssh', '2.0'),
  refused('build.tags', '2.0'),
  refused('annotations', '2.0'),
  refused('cgroup', '2.0'),
  refused('gpus', '2.30.0'),
  refused('uts', '2.15.1'),
  refused('networks.*.driver_opts', '2.27.1'),
  refused('networks.*.gw_priority', '2.33.1'),
  refused('networks.*.interface_name', '2.36.0'),
  refused('networks.*.mac_address', '2.24.0'),
  refused('volumes.*.tmpfs.mode', '2.14.0', 'Write it below "tmpfs": "/path:mode=1777".'),
];

/** Compares versions by their numbers; a part that is missing is zero. */
export function isBefore(version: string, other: string): boolean {
  const [mine, theirs] = [version, other].map((text) => text.split('.').map(Number)) as [number[], number[]];
  for (let at = 0; at < Math.max(mine.length, theirs.length); at += 1) {
    const difference = (mine[at] ?? 0) - (theirs[at] ?? 0);
    if (difference !== 0) return difference < 0;
  }
  return false;
}

/** Returns the value without the field, and the places where the field was. */
function without(value: unknown, [part, ...rest]: readonly string[], at: string[]): [unknown, string[][]] {
  const entries = Array.isArray(value) ? [...value.entries()] : Object.entries(isTree(value) ? value : {});
  const found: string[][] = [];
  const kept = entries.flatMap(([key, item]): [string | number, unknown][] => {
    if (part !== '*' && part !== key) return [[key, item]];
    const place = [...at, String(key)];
    if (rest.length === 0) {
      found.push(place);
      return [];
    }
    const [less, below] = without(item, rest, place);
    found.push(...below);
    return [[key, less]];
  });
  if (found.length === 0) return [value, found];
  return [Array.isArray(value) ? kept.map(([, item]) => item) : Object.fromEntries(kept), found];
}

interface Unknown {
  readonly field: NewerField;
  /** Path in the service: `volumes.0.tmpfs.mode`. */
  readonly place: string;
}

/** Returns a service without the fields that this version of compose does not know, and the removed fields. */
export function knownTo(
  version: string,
  service: Tree,
): { readonly service: Tree; readonly unknown: Unknown[] } {
  let known: unknown = service;
  const unknown: Unknown[] = [];
  for (const field of NEWER_FIELDS.filter(({ since }) => isBefore(version, since))) {
    const [less, places] = without(known, field.path.split('.'), []);
    known = less;
    unknown.push(...places.map((place) => ({ field, place: place.join('.') })));
  }
  return { service: known as Tree, unknown };
}
