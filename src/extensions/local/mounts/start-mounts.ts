/** What is mounted into a sandbox at each of its starts, as its record says and as it is found by then. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { SandboxRecord } from '../state/record.ts';
import type { MountPolicy } from './blocked-sources.ts';
import type { HeldSource } from './mount-policy.ts';
import { holdPlace, holdSource } from './mount-policy.ts';
import type { Target } from './mount-targets.ts';
import { targetsText } from './mount-targets.ts';

type Mounted = Pick<SandboxRecord, 'mounts' | 'volumes'>;

/** A read-only workspace is a mount too, of a directory of our own. */
const WORKSPACE = 'workspace';

/** The field of the request that each mount came from. */
function fieldsOf({ mounts }: Mounted, directory: string): (number | null)[] {
  let index = 0;
  return mounts.map(({ source }) => (source === join(directory, WORKSPACE) ? null : index++));
}

export function mountTargets(mounts: readonly { readonly target: string }[]): Target[] {
  return mounts.map(({ target: path }, index) => ({
    kind: 'mount',
    field: `inputs.mounts[${index}].target`,
    path,
  }));
}

export function volumeTargets(volumes: readonly { readonly path: string }[]): Target[] {
  return volumes.map(({ path }, index) => ({ kind: 'volume', field: `volumes[${index}].path`, path }));
}

function targetsOf(mounted: Mounted, directory: string): Target[] {
  const fields = fieldsOf(mounted, directory);
  const mounts = mounted.mounts.map(({ target }, at): Target => {
    const index = fields[at];
    // Ours may be where no other one may.
    if (index === null) return { kind: 'volume', field: 'workspace', path: target };
    return { kind: 'mount', field: `inputs.mounts[${index}].target`, path: target };
  });
  return [...mounts, ...volumeTargets(mounted.volumes)];
}

/**
 * Judges the sources, and tells the spawner by files in the directory of the sandbox what it may mount and where. They stay
 * held until it has: what it finds is then what was judged. Rejects with `SBX_PATH_REFUSED`.
 */
export function prepareMounts(mounted: Mounted, directory: string, policy: MountPolicy): { release(): void } {
  const held: HeldSource[] = [];
  const release = () => {
    for (const source of held.splice(0)) source.close();
  };
  if (mounted.mounts.length === 0 && mounted.volumes.length === 0) return { release };
  try {
    const fields = fieldsOf(mounted, directory);
    const lines = mounted.mounts.map(({ source, access }, at) => {
      const index = fields[at] ?? null;
      const one = index === null ? holdPlace(source) : holdSource(source, index, policy);
      held.push(one);
      const field = index === null ? 'workspace' : `inputs.mounts[${index}].source`;
      return `${access} ${one.device} ${one.inode} ${field} ${one.path}\0`;
    });
    const mode = 0o600;
    if (lines.length > 0) writeFileSync(join(directory, 'mounts'), lines.join(''), { mode });
    writeFileSync(join(directory, 'targets'), targetsText(targetsOf(mounted, directory)), { mode });
    return { release };
  } catch (error) {
    release();
    throw error;
  }
}
