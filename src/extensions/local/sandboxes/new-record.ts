import type { ProvisionSpec } from '../../../core/ports/extension.ts';
import type { HostFacts } from '../host/host-facts.ts';
import { hasOneUser } from '../host/host-facts.ts';
import { levelFor } from '../host/levels.ts';
import { limitsOf } from '../host/limits.ts';
import type { LocalOptions } from '../host/options.ts';
import type { SandboxRecord } from '../state/record.ts';
import type { RootFs } from '../state/root-fs.ts';
import { rootFsOf } from '../state/root-fs.ts';

/** Data of a record that are not in the request: the root file system, the ids and the machine. */
interface Ground {
  readonly rootFs: RootFs;
  /** First host id of the sandbox's range. */
  readonly range: number;
  readonly facts: HostFacts;
  readonly options: LocalOptions;
  /** Whether no other sandbox has the same ids. */
  readonly ownIds: boolean;
}

const mib = (bytes: number | null) => Math.floor((bytes ?? 0) / 1_048_576);

/** Notes for the user: limits of the vector's promises on this machine. `higher`: isolation above `container`. */
function notesOf({ facts, ownIds }: Ground, limits: SandboxRecord['limits'], higher: boolean): string[] {
  const lacks = (name: 'memory' | 'pids' | 'freezer') => !facts.controllers.includes(name);
  const notes: [boolean, string][] = [
    [
      limits.roomBytes !== null,
      `It is ended when what it writes to its disk is found to be more than ${mib(limits.roomBytes)} MiB.`,
    ],
    [lacks('memory'), 'Its memory is not limited.'],
    [lacks('pids'), 'The number of its processes is not limited.'],
    [
      lacks('freezer'),
      'A snapshot or fork of it while programs run is not of one moment: nothing here can freeze it.',
    ],
    [!ownIds, 'Its user ids outside are those of every other sandbox here.'],
    [higher, 'sudo does not work inside: set-uid files give no rights there.'],
    [higher, 'When it needs more memory or processes than it may have, all of it ends.'],
    [hasOneUser(facts), 'It has one user, root, who is the user of this server outside.'],
  ];
  return notes.filter(([applies]) => applies).map(([, text]) => text);
}

export function newRecord(spec: ProvisionSpec, ground: Ground): SandboxRecord {
  const isolation = levelFor(spec.recipe.isolation, ground.facts.levels);
  const limits = limitsOf(spec.recipe.resources, ground.facts, ground.options);
  return {
    version: 1,
    sandboxUid: spec.stamp.sandboxUid,
    attemptId: spec.stamp.attemptId,
    owner: spec.stamp.owner,
    createdAt: Date.now(),
    endsAt: Math.floor(spec.endsAt),
    keep: spec.recipe.persistence !== 'ephemeral',
    stopped: false,
    sealed: false,
    range: ground.range,
    ...rootFsOf(ground.rootFs),
    limits,
    volumes: (spec.recipe.volumes ?? []).map(({ volumeId, path, access }) => ({
      volumeId: volumeId ?? '',
      path,
      readOnly: access === 'ro',
    })),
    variables: { ...spec.recipe.variables },
    secretFiles: spec.secrets.length > 0,
    isolation,
    noNewPrivs: spec.recipe.noNewPrivs ?? false,
    mounts: [],
    notes: notesOf(ground, limits, isolation !== 'container'),
  };
}
