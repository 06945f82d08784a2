import { join, resolve } from 'node:path';
import { StagedInputs } from '../../inputs/staged-inputs.ts';
import { guardedLookup } from '../../sinks/target-policy.ts';
import { packPath } from '../../trees/pack-tree.ts';
import type { ResolvedConfig } from '../config/config.ts';

const MIB = 1_048_576;

export function stagedInputs({ stateDir, uploads, git }: ResolvedConfig): StagedInputs {
  return new StagedInputs({
    directory: join(stateDir, 'uploads'),
    limits: {
      uploadBytes: uploads.max_mb * MIB,
      uploadEntries: uploads.max_entries,
      workspaceBytes: uploads.workspace_mb * MIB,
      keepMs: uploads.keep,
    },
    gitHosts: git.allow,
    git: {
      lookup: guardedLookup({ allowPrivate: git.allow_private, allowHttp: false }),
      timeoutMs: git.timeout,
      mostBytes: git.max_mb * MIB,
      caFile: git.ca_file === null ? null : resolve(git.ca_file),
      knownHostsFile: git.known_hosts === null ? null : resolve(git.known_hosts),
    },
    pack: packPath,
  });
}
