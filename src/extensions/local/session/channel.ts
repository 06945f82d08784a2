import { SandboxerError } from '../../../contract/errors/errors.ts';
import type { AgentSession } from '../../shared/agent-session/agent-session.ts';
import { connectAgent } from '../../shared/agent-session/connect-agent.ts';
import type { Channel } from '../../shared/channel/channel.ts';
import type { OomKills } from '../../shared/channel/judged-channel.ts';
import { judgedChannel } from '../../shared/channel/judged-channel.ts';
import { secretEnvironment } from '../../shared/channel/secret-files.ts';
import { withReachable } from '../engine/with-reachable.ts';
import type { SandboxRecord } from '../state/record.ts';

function closedDoor(error: unknown): boolean {
  const code =
    error instanceof Error && error.cause instanceof Error ? (error.cause as NodeJS.ErrnoException).code : '';
  return code === 'ENOENT' || code === 'ECONNREFUSED';
}

/** Opens the plain channel to the agent at this path. */
export async function openAgent(path: string, signal?: AbortSignal): Promise<AgentSession> {
  const options = { backend: 'ext.local', ...(signal === undefined ? {} : { signal }) };
  try {
    return await withReachable(path, (reachable) => connectAgent(reachable, options));
  } catch (error) {
    if (signal?.aborted) {
      throw new SandboxerError('SBX_CANCELLED', 'It was given up before the agent answered.', {
        backend: 'ext.local',
      });
    }
    if (!closedDoor(error)) throw error;
    throw new SandboxerError('SBX_BACKEND_LOST', 'It has ended.', { backend: 'ext.local', cause: error });
  }
}

/** Returns the agent's session, with the variables that every program of this sandbox has. */
export async function channelOf(
  agent: AgentSession,
  record: SandboxRecord,
  oomKills: OomKills,
): Promise<Channel> {
  const secrets = record.secretFiles ? await secretEnvironment(agent) : {};
  return judgedChannel(agent, { ...record.variables, ...secrets }, oomKills);
}
