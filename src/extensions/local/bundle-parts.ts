import type { Mount } from '../../contract/inputs.ts';
import type { BundleParts } from './bundle.ts';
import type { Machinery, SeccompSetting } from './engine.ts';
import type { HostFacts } from './host-facts.ts';
import { hasOneUser } from './host-facts.ts';
import { HELPERS } from './skeleton.ts';
import { RANGE_SIZE } from './uid-ranges.ts';

/** What one bundle has that another has not. */
export interface OwnParts {
  readonly range: number;
  readonly secretFiles: boolean;
  readonly openFiles: number | null;
  readonly noNewPrivs: boolean;
  readonly mounts: readonly Mount[];
}

const MOST_OPEN_FILES = 1_048_576;
const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** The host's sudo works where its files show as root's; ours stands in where they do not. */
function pathOn({ root, hostSudo }: HostFacts): string {
  return root && hostSudo ? `${PATH}:${HELPERS}` : `${HELPERS}:${PATH}`;
}

export function bundleParts(
  own: OwnParts,
  facts: HostFacts,
  machinery: Machinery,
  seccomp: SeccompSetting,
): BundleParts {
  const single = hasOneUser(facts);
  return {
    hostname: 'sandbox',
    range: single ? null : { first: own.range, size: facts.root ? RANGE_SIZE : RANGE_SIZE - 1 },
    agentPath: machinery.agentPath,
    agentOptions: [
      ...(single ? ['--user', '0'] : []),
      ...(own.openFiles === null ? [] : ['--nofile', String(own.openFiles)]),
    ],
    environment: { PATH: pathOn(facts), LANG: 'C.UTF-8' },
    openFiles: Math.min(facts.hardOpenFiles, MOST_OPEN_FILES),
    secretFiles: own.secretFiles,
    noNewPrivs: own.noNewPrivs,
    mounts: own.mounts,
    seccomp,
  };
}
