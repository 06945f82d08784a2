import { join } from 'node:path';
import type { Mount } from '../../../contract/profiles/inputs.ts';
import type { SeccompSetting } from '../engine/engine.ts';
import { HELPERS, pathWith } from '../engine/skeleton.ts';
import { RANGE_SIZE, STORAGE_RANGE } from '../engine/uid-ranges.ts';
import type { HostFacts } from '../host/host-facts.ts';
import { hasOneUser } from '../host/host-facts.ts';
import type { SandboxRecord } from '../state/record.ts';
import type { RootFs } from '../state/root-fs.ts';
import type { BundleParts } from './bundle.ts';

/** Parts in which bundles differ. */
export interface OwnParts {
  readonly range: number;
  readonly secretFiles: boolean;
  readonly openFiles: number | null;
  readonly process: RootFs['process'];
  readonly noNewPrivs: boolean;
  readonly mounts: readonly Mount[];
  readonly volumes: SandboxRecord['volumes'];
  /** Directory below which the runtime finds the agent, the volumes and the mounts. */
  readonly place: string;
  /** Whether its agent calls the host, because its level lets it inherit no socket. */
  readonly calls: boolean;
}

/** Directory that the spawner shows to runtimes that run as the user who is root inside. */
export const OPEN_PLACE = '/dev/shm';

const MOST_OPEN_FILES = 1_048_576;

/** Formats the user option of an image: a user, with a group if there is one, each by name or number. */
function userOption(user: string | null): string[] {
  return user === null ? [] : ['--user', user.startsWith(':') ? `0${user}` : user];
}

function environmentOf({ env }: RootFs['process']): Record<string, string> {
  return env.PATH === undefined ? env : { ...env, PATH: `${env.PATH}:${HELPERS}` };
}

export function bundleParts(own: OwnParts, facts: HostFacts, seccomp: SeccompSetting | null): BundleParts {
  const single = hasOneUser(facts);
  return {
    hostname: 'sandbox',
    range: single ? null : { first: own.range, size: facts.root ? RANGE_SIZE : RANGE_SIZE - 1 },
    // Made by the spawner where every sandbox has ids of its own; only crun gets it.
    users:
      facts.root && own.range !== STORAGE_RANGE && facts.runtime?.kind === 'crun' && !own.calls
        ? join(own.place, 'mnt', 'users')
        : null,
    agentPath: join(own.place, 'bin', own.calls ? 'open' : 'init'),
    agentOptions: [
      ...(single ? ['--user', '0'] : userOption(own.process.user)),
      ...(own.process.cwd === null ? [] : ['--cwd', own.process.cwd]),
      ...(own.openFiles === null ? [] : ['--nofile', String(own.openFiles)]),
    ],
    environment: {
      PATH: pathWith(facts.root && facts.hostSudo),
      LC_CTYPE: 'C.UTF-8',
      ...environmentOf(own.process),
    },
    openFiles: Math.min(facts.hardOpenFiles, MOST_OPEN_FILES),
    secretFiles: own.secretFiles,
    door: own.calls ? join(own.place, 'bundle', 'door') : null,
    volumes: own.volumes.map(({ path, readOnly }, at) => ({
      source: join(own.place, 'mnt', `v${at}`),
      path,
      readOnly,
    })),
    noNewPrivs: own.noNewPrivs,
    mounts: own.mounts.map((mount, at) => ({ ...mount, source: join(own.place, 'mnt', 'b', `m${at}`) })),
    seccomp,
  };
}
