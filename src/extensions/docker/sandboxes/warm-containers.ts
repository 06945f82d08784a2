/** Containers started ahead. A request claims one by renaming it, so each is given out once. */
import { randomBytes } from 'node:crypto';
import type { ProvisionSpec } from '../../../core/ports/extension.ts';
import { silentLog } from '../../../core/ports/log.ts';
import type { AgentSession } from '../../shared/agent-session/agent-session.ts';
import { WarmPool } from '../../shared/warm-pool.ts';
import type { Reach } from '../channel/reach.ts';
import type { ContainerPlan } from '../containers/container-config.ts';
import { containerConfig, limitFields } from '../containers/container-config.ts';
import type { Containers, Listed } from '../containers/containers.ts';
import { wantsReadOnlyRoot } from '../containers/docker-inputs.ts';
import { isWarmName, warmName } from '../containers/labels.ts';
import type { DockerOptions } from '../containers/options.ts';
import { DEFAULTS } from '../containers/options.ts';
import { failed, isMissing } from '../engine/engine-error.ts';
import type { EngineFacts } from '../engine/engine-facts.ts';
import type { Images } from '../images/images.ts';

export interface WarmOne {
  readonly name: string;
  readonly reach: Reach;
  readonly agent: AgentSession;
}

export interface WarmParts {
  readonly options: DockerOptions;
  readonly containers: Containers;
  readonly images: Images;
  facts(): Promise<EngineFacts>;
  channel(facts: EngineFacts): ContainerPlan['channel'];
  plan(plan: Omit<ContainerPlan, 'binds'>): Promise<ContainerPlan>;
  agent(name: string, reach: Reach, signal: AbortSignal): Promise<AgentSession>;
  removeDoor(door: string): Promise<void>;
}

const NO_LIMITS = { cpu: null, memory_mb: null, disk_mb: null, pids: null, open_files: null, gpu: null };

export function canBeWarm({ recipe, secrets }: ProvisionSpec): boolean {
  const { resources, inputs } = recipe;
  return (
    recipe.image === 'host' &&
    recipe.isolation === 'container' &&
    recipe.persistence === 'ephemeral' &&
    recipe.network.default === 'deny' &&
    secrets.length === 0 &&
    resources.open_files === null &&
    resources.disk_mb === null &&
    !wantsReadOnlyRoot(recipe) &&
    inputs.warm !== false
  );
}

export class WarmContainers {
  readonly #parts: WarmParts;
  readonly #pool: WarmPool<WarmOne>;
  #owner: string | null = null;
  #making: Promise<WarmOne> | null = null;
  #closed = false;

  constructor(parts: WarmParts) {
    this.#parts = parts;
    this.#pool = new WarmPool(parts.options.warm ?? DEFAULTS.warm, (id) => {
      const making = this.#startAhead(id);
      this.#making = making;
      return making;
    });
  }

  /** Sets the owner of further containers. */
  begin(owner: string): void {
    this.#owner = owner;
    this.#pool.fill();
  }

  /** Claims a running container under this name; returns `null` when there is none. */
  async claim(name: string, { recipe }: ProvisionSpec, facts: EngineFacts): Promise<WarmOne | null> {
    for (let one = this.#pool.take(); one !== null; one = this.#pool.take()) {
      if (!one.agent.isLost && (await this.#rename(one, name))) {
        const { cpu, memory_mb, pids } = recipe.resources;
        if (cpu !== null || memory_mb !== null || pids !== null) {
          await this.#parts.containers.limit(name, limitFields(recipe.resources, facts, this.#parts.options));
        }
        return one;
      }
      await this.#drop(one);
    }
    return null;
  }

  /** Removes containers of an earlier process, which no request can claim any more. */
  async sweep(listed: readonly Listed[]): Promise<void> {
    for (const { name } of listed) {
      if (isWarmName(name)) await this.#parts.containers.remove(name).catch(() => {});
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    const ready = this.#pool.close();
    await this.#making?.catch(() => {});
    for (const one of ready) await this.#drop(one);
  }

  async #drop({ name, agent, reach }: WarmOne): Promise<void> {
    await agent.close();
    await this.#parts.containers.remove(name).catch(() => {});
    await this.#parts.removeDoor(reach.door);
  }

  async #rename(one: WarmOne, name: string): Promise<boolean> {
    try {
      return await this.#parts.containers.rename(one.name, name);
    } catch (error) {
      if (isMissing(error)) return false;
      throw failed(error, { creation: 'maybe_created' });
    }
  }

  async #startAhead(id: string): Promise<WarmOne> {
    const { options, containers, images } = this.#parts;
    const owner = this.#owner;
    if (owner === null || options.defaultImage === null) throw new Error('Nothing can be started ahead yet.');
    if (this.#closed) throw new Error('Nothing is started ahead any more.');
    const facts = await this.#parts.facts();
    const { signal } = new AbortController();
    const clock = { now: () => Date.now(), sleep: async () => {} };
    const ctx = { signal, log: silentLog, clock, host: null };
    const fit = { channel: this.#parts.channel(facts), readable: false };
    const { image, user, channel } = await images.ready('host', fit, ctx);
    if (channel === 'exec') throw new Error('Without the agent nothing is gained by it.');
    const name = warmName(owner, id.replace(/^warm-/, ''));
    const door = randomBytes(8).toString('hex');
    const reach: Reach = { channel, door, keep: false, secrets: false, isolation: 'container' };
    const plan = await this.#parts.plan({
      ...reach,
      kind: 'warm',
      owner,
      image,
      user,
      isolation: 'container',
      runtime: null,
      readOnlyRoot: false,
      openNetwork: false,
      resources: NO_LIMITS,
    });
    try {
      await containers.create(name, containerConfig(plan, facts, options));
      await containers.start(name);
      const agent = await this.#parts.agent(name, reach, signal);
      if (!this.#closed) return { name, reach, agent };
      await agent.close();
      throw new Error('Nobody wants it any more.');
    } catch (error) {
      await containers.remove(name).catch(() => {});
      await this.#parts.removeDoor(door);
      throw error;
    }
  }
}
