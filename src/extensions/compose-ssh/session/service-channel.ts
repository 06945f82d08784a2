import { KeyedMutex } from '../../../async/keyed-mutex.ts';
import { connectAgent } from '../../shared/agent-session/connect-agent.ts';
import type { Channel } from '../../shared/channel/channel.ts';
import { BACKEND, lost, shown, stackFailure } from '../remote/failure.ts';
import type { AgentPlace, HostPlace, RemoteStacks } from '../remote/remote-stacks.ts';
import { stackDirectory } from '../remote/remote-stacks.ts';
import type { ContainerState } from '../remote/stack-state.ts';

const GREET_MS = 60_000;

/** Returns the first running container of a service. */
export function runningOf(service: string, states: readonly ContainerState[]): ContainerState | null {
  return states.find((state) => state.service === service && state.status === 'running') ?? null;
}

/** One at a time for each container: of two agents that start at the same time, one would be lost. */
const opening = new KeyedMutex();

/** Opens the channel to the agent of a container, and starts the agent where it does not run yet. */
export async function openChannel(
  stacks: RemoteStacks,
  place: AgentPlace,
  signal: AbortSignal,
): Promise<Channel> {
  return await opening.run(place.container.id, async () => {
    signal.throwIfAborted();
    return await openNow(stacks, place, signal);
  });
}

async function openNow(stacks: RemoteStacks, place: AgentPlace, signal: AbortSignal): Promise<Channel> {
  const remote = await stacks.openAgent(place, { signal: new AbortController().signal });
  const stream = remote.process.duplex();
  // An aborted caller ends the stream before it has a listener.
  stream.on('error', () => {});
  const end = () => remote.kill();
  signal.addEventListener('abort', end, { once: true });
  try {
    const session = await connectAgent(stream, {
      backend: BACKEND,
      greetMs: GREET_MS,
      signal,
    });
    void session.ended.then(() => remote.kill());
    return {
      session,
      get isLost() {
        return session.isLost;
      },
    };
  } catch (error) {
    remote.kill();
    signal.throwIfAborted();
    const said = shown(remote.process.stderr);
    if (said === '') throw error;
    const what = `No program can be run in ${place.container.service}`;
    throw stackFailure(what, said, await stacks.engineAnswers(place.stack, signal));
  } finally {
    signal.removeEventListener('abort', end);
  }
}

interface ServiceCall {
  readonly project: string;
  readonly service: string;
  readonly signal: AbortSignal;
}

/** Opens the channel to a service, in whichever container it runs now. */
export async function serviceChannel(
  stacks: RemoteStacks,
  place: HostPlace,
  { project, service, signal }: ServiceCall,
): Promise<Channel> {
  const container = runningOf(service, await stacks.state(place, project, { signal }));
  if (container === null) throw lost(`No container of ${service} is running.`);
  return await openChannel(stacks, { stack: stackDirectory(place, project), container }, signal);
}
