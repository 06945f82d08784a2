/** Prepares the mounts of a sandbox at each of its starts: from its record, judged anew. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { SandboxRecord } from '../state/record.ts';
import type { MountPolicy } from './blocked-sources.ts';
import type { HeldSource } from './mount-policy.ts';
import { holdPlace, holdSource } from './mount-policy.ts';
import type { Target } from './mount-targets.ts';
import { targetsText } from './mount-targets.ts';

type Mounted = Pick<SandboxRecord, 'mounts' | 'volumes'>;

/** Name of the read-only workspace, which is mounted from a directory of the sandbox's own. */
const WORKSPACE = 'workspace';

/** Returns the field of the request that each mount came from. */
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
    // The workspace may be mounted where no mount of a request may.
    if (index === null) return { kind: 'volume', field: 'workspace', path: target };
    return { kind: 'mount', field: `inputs.mounts[${index}].target`, path: target };
  });
  return [...mounts, ...volumeTargets(mounted.volumes)];
}

/**
 * Judges the sources, and writes for the spawner, into the directory of the sandbox, which mounts it may make and where. The
 * sources stay open until it has: it then finds exactly the judged files. Rejects with `SBX_PATH_REFUSED`.
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
