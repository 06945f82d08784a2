/** Operations on the stacks of one host: each method is one round trip. */

import { randomBytes } from 'node:crypto';
import { Semaphore } from '../../../async/semaphore.ts';
import { SandboxerError } from '../../../contract/errors/errors.ts';
import type { Stamp } from '../../../core/ports/extension.ts';
import type { ServiceLogOptions } from '../../../core/ports/session.ts';
import type { RemoteProcess, SshHost } from '../../shared/ssh/ssh-host.ts';
import type { RootlessFinding } from './engine.ts';
import { recordWords } from './engine.ts';
import type { EngineRecord } from './engine-record.ts';
import { ROOTFUL } from './engine-record.ts';
import { ANSWERS } from './engine-scripts.ts';
import { BACKEND, hostFailure, lost, shown, stackFailure } from './failure.ts';
import type { MarkedStack } from './marked-stacks.ts';
import { readMarked } from './marked-stacks.ts';
import { AGENT, DOWN, FACTS, FREEZE, LOG, MARKED, STATE, UP, UPLOAD } from './remote-scripts.ts';
import type { Call } from './run-script.ts';
import { GONE, runScript } from './run-script.ts';
import { RemoteLog } from './service-log.ts';
import type { StackHandle } from './stack-handle.ts';
import { parseHandle, projectOf } from './stack-handle.ts';
import type { ContainerState } from './stack-state.ts';
import { readStates } from './stack-state.ts';
import { routesOf } from './subnets.ts';

/** A host that was prepared for stacks: the directory there, and its software. */
export interface HostPlace {
  readonly root: string;
  readonly secrets: string;
  /** Generation of the compose on the host, not of a sandbox. */
  readonly generation: 'v1' | 'v2';
  readonly composeVersion: string;
  /** The version of the engine that `docker` reaches by itself; `null`: the ssh user may use none. */
  readonly engine: string | null;
  readonly rootless: RootlessFinding;
}

export interface AgentPlace {
  /** The directory of the stack on the host. */
  readonly stack: string;
  readonly container: ContainerState;
}

export interface Uploaded {
  /** Handle of the stack if an earlier call brought it up. */
  readonly handle: StackHandle | null;
  /** The recorded engine: a stack made of a snapshot stays on the engine of its images. */
  readonly engine: EngineRecord;
  /** Reason for this engine. */
  readonly note: string | null;
  readonly takenSubnets: readonly string[];
}

export interface NewStack {
  readonly project: string;
  readonly marker: string;
  readonly engine: EngineRecord;
}

export interface Removed {
  readonly removed: readonly string[];
  readonly left: readonly string[];
}

/**
 * Newest version of v1: `docker-compose` itself takes most of a second to answer, and no maintained distribution has an older
 * one.
 */
const LAST_OF_V1 = '1.29';
const FIRST_OF_V2 = '2.0';
/** Exit code of UP where a base image would reach other images. */
const REFUSED_BASE = 79;
const UPLOAD_MS = 30 * 60_000;
const UP_MS = 30 * 60_000;
const ENGINE_ANSWER_MS = 20_000;

/** Concurrent runs of compose: each is a heavy program on the host, and more of them are no faster. */
const MOST_AT_ONCE = 4;
const semaphores = new WeakMap<SshHost, Semaphore>();

function semaphoreOf(host: SshHost): Semaphore {
  const semaphore = semaphores.get(host) ?? new Semaphore(MOST_AT_ONCE);
  semaphores.set(host, semaphore);
  return semaphore;
}

/** Names an image with only that agent in it. */
export function gatewayImageOf(agent: string): string {
  return `sandboxer-gateway:${agent.split('-').at(-1) ?? 'latest'}`;
}

/** Parses the output of an upload: the handle of a stack that is up already, or the taken networks. */
export function uploadedOf(text: string): Uploaded {
  if (text.startsWith('already\n'))
    return {
      handle: parseHandle(text.slice('already\n'.length)),
      engine: ROOTFUL,
      note: null,
      takenSubnets: [],
    };
  const [networks = '', routes = ''] = text.split('routes\n');
  const subnets = [...networks.matchAll(/^subnet (\S+)$/gm)].map(([, subnet = '']) => subnet);
  const [, endpoint] = /^engine rootless (unix:\/\/\S+)$/m.exec(networks) ?? [];
  const engine: EngineRecord = endpoint === undefined ? ROOTFUL : { kind: 'rootless', endpoint };
  return { handle: null, engine, note: null, takenSubnets: [...subnets, ...routesOf(routes)] };
}

export function stackDirectory({ root }: HostPlace, project: string): string {
  return `${root}/stacks/${project}`;
}

export class RemoteStacks {
  readonly host: SshHost;

  constructor(host: SshHost) {
    this.host = host;
  }

  /** Prepares the host. `prove` looks for a rootless engine, once the directory is known. */
  async place(
    directory: string,
    call: Call,
    prove: (root: string) => Promise<RootlessFinding>,
  ): Promise<HostPlace> {
    const { code, stdout, stderr } = await runScript(this.host, FACTS, [directory], {
      creation: 'not_created',
      ...call,
    });
    const facts = new Map(
      stdout
        .toString()
        .split('\n')
        .map((line) => {
          const space = line.indexOf(' ');
          return [line.slice(0, space), line.slice(space + 1)] as const;
        }),
    );
    const [root, secrets, generation, engine] = ['root', 'secrets', 'compose', 'engine'].map(
      (name) => facts.get(name) || undefined,
    );
    if (root === undefined || secrets === undefined || code === 73) {
      throw hostFailure(
        `The directory ${directory} cannot be made on ${this.host.id}`,
        stderr,
        'not_created',
      );
    }
    const rootless = await prove(root);
    if (engine === undefined && 'missing' in rootless)
      throw hostFailure('There is no engine to be used', stderr || 'docker is not there', 'not_created');
    if (generation !== 'v1' && generation !== 'v2') {
      throw hostFailure(
        'There is no compose',
        'Install docker-compose, or the compose plugin of docker.',
        'not_created',
      );
    }
    const [, told] = /v?(\d+\.\d+(?:\.\d+)?)/.exec(facts.get('version') ?? '') ?? [];
    const composeVersion = generation === 'v1' ? LAST_OF_V1 : (told ?? FIRST_OF_V2);
    return { root, secrets, generation, composeVersion, engine: engine ?? null, rootless };
  }

  async upload({ root }: HostPlace, stack: NewStack, call: Call): Promise<Uploaded> {
    const args = [root, stack.project, stack.marker, ...recordWords(stack.engine)];
    const { code, stdout, stderr } = await runScript(this.host, UPLOAD, args, {
      timeoutMs: UPLOAD_MS,
      ...call,
    });
    if (code !== 0) throw hostFailure('The tree could not be written to the host', stderr, 'maybe_created');
    return uploadedOf(stdout.toString());
  }

  /**
   * Starts the stack. `null` when a network is taken: plan with other subnets and call again. The files of the plan travel with
   * each call; the tree is not sent anew.
   */
  async up(
    place: HostPlace,
    project: string,
    gatewayAgent: string | null,
    call: Call,
  ): Promise<ContainerState[] | null> {
    const { root, secrets, generation } = place;
    const gateway = gatewayAgent === null ? [] : [gatewayAgent, gatewayImageOf(gatewayAgent)];
    const args = [root, secrets, project, generation, ...gateway];
    const result = await semaphoreOf(this.host).run(() =>
      runScript(this.host, UP, args, { timeoutMs: UP_MS, ...call }),
    );
    if (result.code === 0) return readStates(result.stdout.toString());
    if (result.code === GONE) throw lost('The stack was removed while it was made.');
    if (result.code === REFUSED_BASE) {
      const remedy = 'Build from an image without such an instruction.';
      const found = { backend: BACKEND, creation: 'created', remedy } as const;
      throw new SandboxerError('SBX_COMPOSE_REFUSED', `${shown(result.stderr)}.`, found);
    }
    if (/pool overlaps with other one|conflicts with network/i.test(result.stderr)) return null;
    const states = readStates(result.stdout.toString());
    const dead = states.filter(({ status, exitCode }) => status === 'exited' && exitCode !== 0);
    const note = dead.map(({ service, exitCode }) => ` ${service} exited with ${exitCode}.`).join('');
    throw stackFailure(
      'The stack did not come up',
      `${result.stderr}${note}`,
      await this.engineAnswers(stackDirectory(place, project), call.signal),
    );
  }

  /** Returns whether the engine of a stack answers: a failure just before was then not the engine's. */
  async engineAnswers(stack: string, signal: AbortSignal | undefined): Promise<boolean> {
    const asked = await this.host
      .run(['sh', '-c', ANSWERS, 'sh', stack], {
        timeoutMs: ENGINE_ANSWER_MS,
        ...(signal !== undefined && { signal }),
      })
      .catch(() => null);
    return asked?.code === 0;
  }

  async state({ root }: HostPlace, project: string, call: Call): Promise<ContainerState[]> {
    const result = await runScript(this.host, STATE, [root, project], call);
    if (result.code === GONE) throw lost('There is no such stack on the host.');
    if (result.code !== 0) throw hostFailure('The stack could not be looked at', result.stderr, 'created');
    return readStates(result.stdout.toString());
  }

  async down(place: HostPlace, stamp: Stamp, keepImages: boolean, call: Call): Promise<Removed> {
    const { root, secrets } = place;
    const args = [root, secrets, projectOf(stamp), stamp.owner, keepImages ? 'keep' : 'remove'];
    const { code, stdout, stderr } = await runScript(this.host, DOWN, args, {
      timeoutMs: 5 * 60_000,
      ...call,
    });
    if (code !== 0) throw hostFailure('The stack could not be removed', stderr, 'created');
    const lines = stdout.toString().split('\n');
    const told = (word: string) =>
      lines.flatMap((line) => (line.startsWith(`${word} `) ? [line.slice(word.length + 1)] : []));
    return { removed: told('removed'), left: told('left') };
  }

  async marked({ root }: HostPlace, call: Call): Promise<MarkedStack[]> {
    const { code, stdout, stderr } = await runScript(this.host, MARKED, [root], call);
    if (code !== 0) throw hostFailure('The stacks could not be listed', stderr, 'created');
    return readMarked(stdout.toString());
  }

  async freeze(place: HostPlace, project: string, frozen: boolean, call: Call): Promise<void> {
    const change = frozen ? ['pause', 'running'] : ['unpause', 'paused'];
    const args = [project, ...change, stackDirectory(place, project)];
    const { code, stderr } = await runScript(this.host, FREEZE, args, call);
    if (code !== 0)
      throw hostFailure(`The stack could not be ${frozen ? 'paused' : 'resumed'}`, stderr, 'created');
  }

  /** Returns the output of all containers of a service. */
  async log(
    place: HostPlace,
    project: string,
    service: string,
    { tail, follow, signal }: ServiceLogOptions,
  ): Promise<RemoteLog> {
    const shown = [tail === null ? 'all' : String(tail), follow ? 'follow' : 'end'];
    const args = [project, service, ...shown, stackDirectory(place, project)];
    const remote = await this.host.open(['sh', '-c', LOG, 'sh', ...args], {
      creation: 'created',
      ...(signal === undefined ? {} : { signal }),
    });
    return new RemoteLog(`log@${service}`, remote);
  }

  /**
   * Opens a channel to the agent of a container, and starts the agent where it does not run. One at a time for each container.
   */
  async openAgent({ stack, container }: AgentPlace, call: Call): Promise<RemoteProcess> {
    const root = /^(?:|0|root)(?::.*)?$/.test(container.user);
    const socket = randomBytes(8).toString('hex');
    const args = [container.id, root ? '0' : '', container.cwd || '/', stack, socket];
    return await this.host.open(['sh', '-c', AGENT, 'sh', ...args], {
      signal: call.signal,
      creation: 'created',
    });
  }
}
