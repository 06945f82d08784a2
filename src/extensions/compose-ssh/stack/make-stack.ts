import { SandboxerError } from '../../../contract/errors/errors.ts';
import type { ProvisionSpec } from '../../../core/ports/extension.ts';
import { hostVariables } from '../compose/plan/emit-service.ts';
import type { StackPlan } from '../compose/plan/plan-stack.ts';
import { unheldBy } from '../remote/engine.ts';
import { BACKEND, hostFailure } from '../remote/failure.ts';
import type { HostPlace, RemoteStacks, Uploaded } from '../remote/remote-stacks.ts';
import { gatewayImageOf } from '../remote/remote-stacks.ts';
import type { StackHandle } from '../remote/stack-handle.ts';
import { projectOf } from '../remote/stack-handle.ts';
import type { ContainerState } from '../remote/stack-state.ts';
import { freeSubnets } from '../remote/subnets.ts';
import type { AnalysedStack } from './analyse-stack.ts';
import { archiveOf, textEntry } from './ship-tree.ts';

const NETWORK_TRIES = 5;

export interface Ground {
  readonly stacks: RemoteStacks;
  readonly place: HostPlace;
  readonly agent: string;
  /** The address range for networks. */
  readonly pool: string;
}

export interface MadeStack {
  readonly handle: StackHandle;
  /** States at the end of compose. */
  readonly states: readonly ContainerState[];
}

interface StackMaking {
  readonly uploaded: Uploaded;
  readonly signal: AbortSignal;
}

/** Brings up a stack whose tree is on its host. A network that was taken meanwhile is chosen anew. */
export async function makeStack(
  spec: ProvisionSpec,
  stack: AnalysedStack,
  { stacks, place, agent, pool }: Ground,
  { uploaded: { takenSubnets, engine, note }, signal }: StackMaking,
): Promise<MadeStack> {
  const project = projectOf(spec.stamp);
  const terms = {
    directory: `${place.root}/stacks/${project}`,
    secretDirectory: `${place.secrets}/${project}`,
    agent,
    gatewayImage: gatewayImageOf(agent),
    composeVersion: place.composeVersion,
    unheld: unheldBy(engine, place.rootless),
  };
  for (let tries = 0; tries < NETWORK_TRIES; tries += 1) {
    const subnets = subnetsFor(stack, pool, takenSubnets, `${project} ${tries}`);
    const plan = stack.plan({ ...terms, subnets });
    const handle = stack.handle(plan, engine, note);
    const files = filesOf(plan, handle, stack);
    const made = await stacks.up(place, project, plan.gatewayPorts.size > 0 ? agent : null, {
      signal,
      stdin: secretsThen(spec, archiveOf(files)),
    });
    if (made !== null) return { handle, states: made };
  }
  throw hostFailure('The stack did not come up', 'No free network was found on the host.', 'created');
}

function subnetsFor(stack: AnalysedStack, pool: string, taken: readonly string[], seed: string): string[] {
  const wanted = stack.networkCount;
  const free = freeSubnets(pool, taken, { prefix: stack.prefix, count: wanted, seed });
  if (free.length >= wanted) return free;
  throw new SandboxerError(
    'SBX_BACKEND_QUOTA',
    `The pool ${pool} has no room for ${wanted} networks on this host.`,
    {
      backend: BACKEND,
      creation: 'created',
      remedy: 'Destroy stacks on this host, or configure a larger pool.',
    },
  );
}

const linesOf = (names: readonly string[]) => names.map((name) => `${name}\n`).join('');

function filesOf(plan: StackPlan, handle: StackHandle, { inputs, baseImages }: AnalysedStack) {
  return [
    textEntry('stack.yml', plan.file),
    textEntry('handle.json', JSON.stringify(handle)),
    textEntry('places', places(plan)),
    textEntry('base-images', linesOf(baseImages)),
    ...(inputs.remove_pulled ? [textEntry('watched-images', linesOf(plan.namedImages))] : []),
    ...[...plan.files].map(([path, text]) => textEntry(path, text)),
  ];
}

/** Returns three words for each place, ended by NUL. */
function places({ directories, copies }: StackPlan): string {
  const words = [
    ...directories.map((path) => ['directory', path, '']),
    ...copies.map(({ from, to, how }) => [how, from, to]),
  ];
  return words
    .flat()
    .map((word) => `${word}\0`)
    .join('');
}

/** Yields a line for each secret, and a line that ends them: secrets travel only on this way. */
async function* secretsThen(
  spec: ProvisionSpec,
  rest: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  const variables = hostVariables(spec.secrets);
  for (const { name, delivery, value } of spec.secrets) {
    const under = delivery === 'env' ? variables.get(name) : name;
    yield Buffer.from(`${delivery} ${under} ${Buffer.from(value).toString('base64')}\n`);
  }
  yield Buffer.from('.\n');
  yield* rest;
}
