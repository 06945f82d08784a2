/** Finds the levels above a container: which runtimes of an engine offer them, and whether they work on this engine. */
import { createHash, randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { SandboxerError } from '../../../contract/errors/errors.ts';
import type { IsolationLevel } from '../../../contract/extensions/capability.ts';
import { kernelInside } from '../../shared/isolation/text-from.ts';
import type { Lack, TriedLevels } from '../../shared/isolation/tried-levels.ts';
import { AgentDoors } from '../channel/agent-doors.ts';
import { agentInside } from '../channel/agent-inside.ts';
import { isStronger } from '../channel/channel-choice.ts';
import { containerConfig } from '../containers/container-config.ts';
import { Containers } from '../containers/containers.ts';
import { doorOf } from '../containers/labels.ts';
import type { DockerOptions } from '../containers/options.ts';
import type { EngineClient } from '../engine/engine-client.ts';
import { BACKEND, failed } from '../engine/engine-error.ts';
import type { EngineFacts } from '../engine/engine-facts.ts';
import { preparedTree } from '../images/prepared-tree.ts';

type Higher = Extract<IsolationLevel, 'gvisor' | 'microvm'>;

interface Row {
  readonly level: Higher;
  readonly runtimes: readonly string[];
  readonly absent: string;
  readonly broken: string;
}

const ROWS: readonly Row[] = [
  {
    level: 'gvisor',
    runtimes: ['runsc', 'io.containerd.runsc.v1'],
    absent: 'Install gVisor on the engine’s machine: runsc install, then systemctl restart docker.',
    broken: 'Try it by hand: docker run --rm --runtime runsc IMAGE ls. A newer release of gVisor may help.',
  },
  {
    level: 'microvm',
    runtimes: ['kata', 'kata-runtime', 'kata-qemu', 'kata-clh', 'kata-fc', 'io.containerd.kata.v2'],
    absent:
      'On a machine with /dev/kvm, install Kata Containers and name its runtime in /etc/docker/daemon.json.',
    broken: 'Check /dev/kvm, then try it by hand: docker run --rm --runtime kata IMAGE ls.',
  },
];

const TRIAL_MS = 20_000;
const FORGOTTEN_MS = 600_000;
const USER = '1000:1000';

/** Levels by the engine's name for the runtime. */
export type Levels = TriedLevels<string>;

export const NO_LEVELS: Levels = { offered: new Map(), lacking: new Map() };

interface Parts {
  readonly client: EngineClient;
  readonly facts: EngineFacts;
  readonly options: DockerOptions;
  readonly agentPath: string;
}

/** Makes an image with only the agent: the trial then needs no image of the engine. */
async function trialImage({ client, agentPath }: Parts, signal: AbortSignal): Promise<string> {
  const agent = readFileSync(agentPath);
  const tag = `trial-${createHash('sha256').update(agent).digest('hex').slice(0, 32)}`;
  const name = `sandboxer-prepared:${tag}`;
  const known = await client.send('GET', `/images/${encodeURIComponent(name)}/json`, { signal }).then(
    () => true,
    () => false,
  );
  if (!known) {
    const query = { fromSrc: '-', repo: 'sandboxer-prepared', tag };
    await client.send('POST', '/images/create', { query, stream: preparedTree(USER, agent, true), signal });
  }
  return name;
}

/** Removes the remains of a trial whose process has ended. */
async function removeForgotten(containers: Containers): Promise<void> {
  for (const { name, createdAt } of await containers.ofKind('trial'))
    if (createdAt < Date.now() - FORGOTTEN_MS) await containers.remove(name);
}

/** Makes a sandbox as for a request, and checks it inside. Returns `null` if all is as it should be. */
async function tryIt(
  parts: Parts,
  level: Higher,
  runtime: string,
  signal: AbortSignal,
): Promise<string | null> {
  const { client, facts, options } = parts;
  const containers = new Containers(client);
  const name = `sbx-trial-${randomBytes(8).toString('hex')}`;
  const reach = {
    channel: 'relay',
    door: doorOf(name),
    keep: false,
    secrets: false,
    isolation: level,
  } as const;
  const resources = { cpu: null, memory_mb: null, pids: null, disk_mb: null, open_files: null, gpu: null };
  try {
    await removeForgotten(containers);
    const config = containerConfig(
      {
        ...reach,
        kind: 'trial',
        owner: null,
        image: await trialImage(parts, signal),
        user: USER,
        binds: null,
        runtime,
        readOnlyRoot: false,
        openNetwork: false,
        resources,
      },
      facts,
      options,
    );
    await containers.create(name, config, signal);
    await containers.start(name, signal);
    const doors = new AgentDoors(options.directory);
    const session = await agentInside({ client, containers, doors }, name, reach, signal);
    try {
      const { entries } = await session.files.list('/');
      if (!entries.some(({ path }) => path === '/workspace')) return 'it does not see its files';
      const kernel = await kernelInside(session.files);
      if (kernel === '' || facts.kernel === '') return 'it is not known whose kernel it runs on';
      return kernel === facts.kernel ? 'it shares the kernel with the engine’s machine' : null;
    } finally {
      await session.close();
    }
  } catch (error) {
    return signal.aborted ? `it did not answer within ${TRIAL_MS / 1000} s` : failed(error).detail;
  } finally {
    await containers.remove(name).catch(() => {});
  }
}

/** Tries every runtime that the engine has for a higher level. Never rejects. */
export async function findLevels(parts: Parts): Promise<Levels> {
  const offered = new Map<IsolationLevel, string>();
  const lacking = new Map<IsolationLevel, Lack>();
  for (const { level, runtimes, absent, broken } of ROWS) {
    const runtime = runtimes.find((name) => parts.facts.runtimes.includes(name));
    if (runtime === undefined) {
      lacking.set(level, { reason: `The engine has no runtime ${runtimes[0]}`, remedy: absent });
      continue;
    }
    const failure = await tryIt(parts, level, runtime, AbortSignal.timeout(TRIAL_MS));
    if (failure === null) offered.set(level, runtime);
    else lacking.set(level, { reason: `The engine’s ${runtime} cannot be used: ${failure}`, remedy: broken });
  }
  return { offered, lacking };
}

/** Returns the runtime of an isolation level, `null` for the engine's own. Throws where the engine cannot give the level. */
export function runtimeFor({ offered, lacking }: Levels, isolation: IsolationLevel): string | null {
  if (!isStronger(isolation)) return null;
  const runtime = offered.get(isolation);
  if (runtime !== undefined) return runtime;
  const { reason, remedy } = lacking.get(isolation) ?? {};
  throw new SandboxerError('SBX_UNSUPPORTED', `${reason ?? `The engine was not tried for ${isolation}`}.`, {
    backend: BACKEND,
    creation: 'not_created',
    remedy: remedy ?? 'Start the server while the engine runs, or ask for less isolation.',
  });
}
