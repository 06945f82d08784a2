import { readFile } from 'node:fs/promises';
import { SandboxerError } from '../../../contract/errors/errors.ts';
import type { CanaryKit } from '../../../core/ports/extension.ts';
import type { AgentBinaries } from '../../shared/ssh/upload-agent.ts';
import { BACKEND } from '../remote/failure.ts';
import { archiveOf, textEntry } from './ship-tree.ts';

const PROGRAM = '/canary';

const COMPOSE = `services:
  canary:
    build: .
    init: false
`;

/** Built from `scratch`, so that no registry is needed: the agent is one file that needs no other. */
const DOCKERFILE = `FROM scratch
COPY canary ${PROGRAM}
ENTRYPOINT ["${PROGRAM}", "--listen", "/dev/shm/.canary", "--cwd", "/"]
`;

/** Returns the smallest possible stack. */
export async function canaryStack(agents: AgentBinaries, machine: string): Promise<CanaryKit> {
  const agent = Object.hasOwn(agents, machine) ? agents[machine] : undefined;
  if (agent === undefined)
    throw new SandboxerError('SBX_UNSUPPORTED', `There is no agent for ${machine}.`, {
      backend: BACKEND,
      creation: 'not_created',
    });
  const program = await readFile(agent);
  return {
    inputs: {
      list: [{ name: 'repo', uploadId: 'canary', digest: 'sha256:0', origin: { kind: 'upload' } }],
      open: async () =>
        archiveOf([
          textEntry('compose.yaml', COMPOSE),
          textEntry('Dockerfile', DOCKERFILE),
          textEntry('canary', program, 0o755),
        ]),
    },
    argv: [PROGRAM, '--version'],
  };
}
