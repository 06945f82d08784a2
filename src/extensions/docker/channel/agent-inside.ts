import { setTimeout as sleep } from 'node:timers/promises';
import { SandboxerError } from '../../../contract/errors/errors.ts';
import type { AgentSession } from '../../shared/agent-session/agent-session.ts';
import { connectAgent } from '../../shared/agent-session/connect-agent.ts';
import { INSIDE } from '../containers/container-config.ts';
import type { Containers } from '../containers/containers.ts';
import type { EngineClient } from '../engine/engine-client.ts';
import { AgentEnded, BACKEND, failed, lost } from '../engine/engine-error.ts';
import { openExecStream } from '../engine/exec-stream.ts';
import type { AgentDoors } from './agent-doors.ts';
import type { Reach } from './reach.ts';

const CALL_MS = 30_000;
const LOOK_MS = 250;
const RETRY_MS = 20;

interface Parts {
  readonly client: EngineClient;
  readonly containers: Containers;
  readonly doors: AgentDoors;
}

/** Connects to the agent in a started container, as soon as it answers; gives up at once when the container has ended. */
export async function agentInside(
  parts: Parts,
  name: string,
  reach: Reach,
  signal: AbortSignal,
): Promise<AgentSession> {
  const over = new AbortController();
  const stop = AbortSignal.any([signal, over.signal]);
  const watching = watchEnd(parts.containers, name, over.signal);
  try {
    return await Promise.race([greet(parts, name, reach, stop), watching]);
  } catch (error) {
    if (signal.aborted) {
      throw new SandboxerError('SBX_CANCELLED', 'It was given up before the agent answered.', {
        backend: BACKEND,
        creation: 'maybe_created',
      });
    }
    throw error instanceof AgentEnded ? error : failed(error);
  } finally {
    over.abort();
    watching.catch(() => {});
  }
}

/**
 * Connects only where the kernel names process 1 as the listener. gVisor's kernel does not record listeners: it answers every
 * SO_PEERCRED with the calling process, so that there the check is left out (and `not_enforced` says so).
 */
function relayCommand({ isolation }: Reach): string[] {
  const relay = [INSIDE.agent, '--relay', INSIDE.relay];
  return isolation === 'gvisor' ? relay : [...relay, '--peer', '1'];
}

async function greet(
  { client, doors }: Parts,
  name: string,
  reach: Reach,
  signal: AbortSignal,
): Promise<AgentSession> {
  const until = performance.now() + CALL_MS;
  for (;;) {
    const left = Math.max(1, until - performance.now());
    const stream =
      reach.channel === 'call'
        ? await (await doors.open(reach.door)).take(signal, left)
        : await openExecStream(client, name, relayCommand(reach), signal);
    try {
      return await connectAgent(stream, { backend: BACKEND, signal, greetMs: left });
    } catch (error) {
      // A connection from before a restart, or an agent that does not listen yet.
      if (signal.aborted || performance.now() >= until) throw error;
      await sleep(RETRY_MS, undefined, { signal }).catch(() => {});
    }
  }
}

/** Rejects when the container is not running any more; never resolves. */
async function watchEnd(containers: Containers, name: string, over: AbortSignal): Promise<never> {
  for (;;) {
    await sleep(LOOK_MS, undefined, { signal: over, ref: false });
    const container = await containers.find(name, over).catch(() => undefined);
    if (container === undefined) continue;
    if (container === null) throw lost('The engine no longer has its container.');
    const { Running, ExitCode, Error: why } = container.State;
    if (!Running) throw new AgentEnded(ExitCode, why);
  }
}
