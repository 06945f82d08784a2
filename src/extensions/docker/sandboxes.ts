/** From a spec to a running container, from a container to its channel, and its end. */
import { randomBytes } from 'node:crypto';
import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { SandboxerError } from '../../contract/errors.ts';
import type { ExtensionContext, ProvisionSpec, ResolvedSecret } from '../../core/extension.ts';
import type { AgentSession } from '../shared/agent-session/agent-session.ts';
import { connectAgent } from '../shared/agent-session/connect-agent.ts';
import type { Channel } from '../shared/channel.ts';
import { judgedChannel } from '../shared/judged-channel.ts';
import { KeptChannels } from '../shared/kept-channels.ts';
import { deliverSecrets, secretEnvironment } from '../shared/secret-files.ts';
import { Turns } from '../shared/turns.ts';
import { WarmPool } from '../shared/warm-pool.ts';
import { AgentDoor } from './agent-door.ts';
import type { DockerOptions } from './config.ts';
import { DEFAULTS, runtimeFor } from './config.ts';
import type { ChannelKind, ContainerPlan } from './container-config.ts';
import { containerConfig, INSIDE, limitFields } from './container-config.ts';
import type { Containers, Listed } from './containers.ts';
import type { EngineClient } from './engine-client.ts';
import { BACKEND, EngineError, failed, isMissing, lost } from './engine-error.ts';
import type { EngineFacts } from './engine-facts.ts';
import type { Container } from './engine-replies.ts';
import { openExecStream } from './exec-stream.ts';
import type { Named } from './handle.ts';
import type { Images } from './images.ts';
import { containerName, doorOf, isWarmName, LABEL, stampIn, warmName } from './labels.ts';
import { oomKillsInside } from './oom-kills.ts';
import type { SourceImage } from './snapshot-images.ts';

export interface Parts {
  readonly options: DockerOptions;
  readonly client: EngineClient;
  readonly containers: Containers;
  readonly images: Images;
  readonly agentPath: string;
  facts(signal?: AbortSignal): Promise<EngineFacts>;
  /** Whether directories of this machine can be mounted there. */
  readonly local: boolean;
}

/** How a container is reached; from its labels. */
interface Reach {
  readonly channel: ChannelKind;
  readonly door: string;
  readonly keep: boolean;
  readonly secrets: boolean;
  readonly isolation: string;
}

interface WarmOne {
  readonly name: string;
  readonly reach: Reach;
  readonly agent: AgentSession;
}

const CALL_MS = 30_000;
const LOOK_MS = 250;
const MISSING_BIND = /bind source path does not exist|invalid mount config|no such file or directory.*mount/i;

/** As `doorOf` makes them: never a path. */
const DOOR = /^[0-9a-f]{16}$/;

function reachOf(labels: Readonly<Record<string, string>>): Reach {
  const door = labels[LABEL.door] ?? '';
  if (!DOOR.test(door)) throw lost('The engine says of its container what we have never written.');
  return {
    channel: labels[LABEL.channel] === 'relay' ? 'relay' : 'call',
    door,
    keep: labels[LABEL.keep] === 'yes',
    secrets: labels[LABEL.secrets] === 'yes',
    isolation: labels[LABEL.isolation] ?? 'container',
  };
}

export class Sandboxes {
  readonly #parts: Parts;
  readonly #turns = new Turns();
  readonly #doors = new Map<string, Promise<AgentDoor>>();
  readonly #reach = new Map<string, Reach>();
  /** Under way, until the engine has started it and its secrets are inside. */
  readonly #starting = new Map<string, Promise<void>>();
  readonly #kept = new KeptChannels();
  readonly #warm: WarmPool<WarmOne>;
  #owner: string | null = null;
  /** The engine cannot see our directories after all. */
  #apart = false;

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#warm = new WarmPool(parts.options.warm ?? DEFAULTS.warm, (name) => this.#startAhead(name));
  }

  async inTurn<T>(name: string, work: () => Promise<T>): Promise<T> {
    return await this.#turns.take(name, work);
  }

  /** Creates it under its name and lets the start go on by itself: `channel` waits for it. */
  async make(spec: ProvisionSpec, source: SourceImage | null, ctx: ExtensionContext): Promise<void> {
    const facts = await this.#parts.facts(ctx.signal);
    this.#requireRuntime(spec, facts);
    this.meet(spec.stamp.owner);
    const name = containerName(spec.stamp);
    if (source === null && this.#canBeWarm(spec) && (await this.#claim(name, spec, facts))) return;
    if (await this.#create(name, spec, source, facts, ctx)) {
      this.#begin(name, spec.secrets);
      return;
    }
    const container = await this.owned(name, spec.stamp.owner, ctx.signal);
    if (container === null) {
      throw new SandboxerError('SBX_CONFLICT', 'The engine has a container of this name that is not ours.', {
        backend: BACKEND,
        creation: 'not_created',
        remedy: `Remove or rename the container ${name}.`,
      });
    }
    if (container.State.Status === 'created' && !this.#starting.has(name)) this.#begin(name, spec.secrets);
  }

  /** The container of this name, if it is ours. */
  async owned(name: string, owner: string, signal?: AbortSignal): Promise<Container | null> {
    const container = await this.#parts.containers.find(name, signal);
    if (container === null || container.Config.Labels[LABEL.owner] !== owner) return null;
    return container;
  }

  async list(owner: string, signal?: AbortSignal): Promise<Listed[]> {
    this.meet(owner);
    const all = await this.#parts.containers.list(owner, signal);
    return all.filter(({ name }) => stampIn(name)?.owner === owner);
  }

  /** A channel into it, once it runs; a kept one is started again where it has stopped. */
  async channel({ name, stamp, variables }: Named, signal: AbortSignal): Promise<Channel> {
    await this.#starting.get(name);
    const kept = this.#kept.take(name);
    if (kept !== null) return kept;
    let reach = this.#reach.get(name);
    const called = reach?.channel === 'call' && (await this.#door(reach.door)).hasCaller;
    if (reach === undefined || !called) reach = await this.#revive(name, stamp.owner, signal);
    return await this.#open(name, reach, variables, signal);
  }

  /** The level that its container was made with. */
  isolation(name: string): string {
    return this.#reach.get(name)?.isolation ?? 'container';
  }

  /** The channel that proved it ready serves whoever comes next. */
  keep(name: string, channel: Channel): void {
    this.#kept.keep(name, channel);
  }

  /** Nothing there is success. */
  async end(name: string, owner: string, signal: AbortSignal): Promise<Container | null> {
    await this.#starting.get(name)?.catch(() => {});
    const container = await this.owned(name, owner, signal);
    this.#kept.drop(name);
    if (container !== null) await this.#parts.containers.remove(container.Id);
    const door = container?.Config.Labels[LABEL.door] ?? doorOf(name);
    this.#reach.delete(name);
    await this.#removeDoor(door);
    return container;
  }

  /** From here on we know who we are: what an earlier process has started ahead is nobody's. */
  meet(owner: string): void {
    if (this.#owner !== null) return;
    this.#owner = owner;
    void this.#sweep(owner).catch(() => {});
  }

  async close(): Promise<void> {
    for (const { name, agent } of this.#warm.close()) {
      await agent.close();
      await this.#parts.containers.remove(name).catch(() => {});
    }
    this.#kept.close();
    for (const door of this.#doors.values()) (await door.catch(() => null))?.close();
    this.#doors.clear();
  }

  #requireRuntime({ recipe }: ProvisionSpec, facts: EngineFacts): void {
    const { isolation } = recipe;
    if ((isolation !== 'gvisor' && isolation !== 'microvm') || runtimeFor(isolation, facts) !== null) return;
    throw new SandboxerError('SBX_UNSUPPORTED', `The engine has no runtime for ${isolation}.`, {
      backend: BACKEND,
      creation: 'not_created',
      remedy: 'Add the runtime to the engine’s configuration (runsc or kata), or ask for less isolation.',
    });
  }

  /** Sockets of this machine do not reach into a stronger wall; a relay that the engine starts does. */
  #channelFor(isolation: string): ChannelKind {
    const { options, local } = this.#parts;
    if (options.channel === 'call' || options.channel === 'relay') return options.channel;
    return local && !this.#apart && isolation !== 'gvisor' && isolation !== 'microvm' ? 'call' : 'relay';
  }

  async #create(
    name: string,
    spec: ProvisionSpec,
    source: SourceImage | null,
    facts: EngineFacts,
    ctx: ExtensionContext,
  ): Promise<boolean> {
    const { recipe } = spec;
    const build = async (): Promise<boolean> => {
      const channel = this.#channelFor(recipe.isolation);
      const { image, user } = await this.#imageFor(recipe.image, source, channel, ctx);
      const plan = await this.#plan({
        kind: 'sandbox',
        owner: spec.stamp.owner,
        image,
        user,
        channel,
        door: doorOf(name),
        isolation: recipe.isolation,
        keep: recipe.persistence !== 'ephemeral',
        secrets: spec.secrets.length > 0,
        readOnlyRoot: recipe.inputs.read_only_root === true,
        openNetwork: recipe.network.default === 'allow',
        resources: recipe.resources,
      });
      const made = await this.#parts.containers.create(
        name,
        containerConfig(plan, facts, this.#parts.options),
        ctx.signal,
      );
      if (made) this.#reach.set(name, plan);
      return made;
    };
    try {
      return await build();
    } catch (error) {
      if (!(error instanceof EngineError) || ctx.signal.aborted) throw error;
      if (this.#parts.local && MISSING_BIND.test(error.message) && !this.#apart) this.#apart = true;
      else if (isMissing(error)) this.#parts.images.forget();
      else throw failed(error, { creation: 'not_created' });
      return await build();
    }
  }

  async #imageFor(
    image: string,
    source: SourceImage | null,
    channel: ChannelKind,
    ctx: ExtensionContext,
  ): Promise<{ readonly image: string; readonly user: string }> {
    if (source === null) return await this.#parts.images.ready(image, channel, ctx);
    if (source.channel === channel || channel === 'call') return source;
    const found = await this.#parts.images.find(source.image, ctx.signal);
    if (found === null) throw new EngineError(404, 'The snapshot has gone.');
    return { ...(await this.#parts.images.prepare(found, channel, ctx.signal)), user: source.user };
  }

  async #plan(plan: Omit<ContainerPlan, 'binds'>): Promise<ContainerPlan> {
    if (plan.channel === 'relay') return { ...plan, binds: null };
    const { directory } = await this.#door(plan.door);
    return { ...plan, binds: { agent: this.#parts.agentPath, door: directory } };
  }

  #begin(name: string, secrets: readonly ResolvedSecret[]): void {
    const starting = this.#start(name, secrets).finally(() => {
      if (this.#starting.get(name) === starting) this.#starting.delete(name);
    });
    // Whoever waits for it gets the error; that nobody waits yet is no crash.
    starting.catch(() => {});
    this.#starting.set(name, starting);
  }

  async #start(name: string, secrets: readonly ResolvedSecret[]): Promise<void> {
    try {
      await this.#parts.containers.start(name);
    } catch (error) {
      throw failed(error, { creation: 'maybe_created' });
    }
    if (secrets.length === 0) return;
    const reach = this.#reach.get(name);
    if (reach === undefined) throw lost('It has ended.');
    await deliverSecrets(await this.#agent(name, reach, new AbortController().signal), secrets);
  }

  /** Looks whether it runs, and starts it where it should. */
  async #revive(name: string, owner: string, signal: AbortSignal): Promise<Reach> {
    const container = await this.owned(name, owner, signal);
    if (container === null) throw lost('The engine no longer has its container.');
    const reach = reachOf(container.Config.Labels);
    this.#reach.set(name, reach);
    const { Status, Running, Error: why } = container.State;
    if (Running) return reach;
    if (Status !== 'created' && !reach.keep) {
      throw lost(`Its container has ended${why === '' ? '' : `: ${why}`}.`);
    }
    if (!this.#starting.has(name)) this.#begin(name, []);
    await this.#starting.get(name);
    return reach;
  }

  async #open(
    name: string,
    reach: Reach,
    variables: Named['variables'],
    signal: AbortSignal,
  ): Promise<Channel> {
    const agent = await this.#agent(name, reach, signal);
    const secrets = reach.secrets ? await secretEnvironment(agent) : {};
    return this.#judged(agent, { ...variables, ...secrets });
  }

  #judged(agent: AgentSession, variables: Named['variables']): Channel {
    return judgedChannel(agent, variables, () => oomKillsInside(agent));
  }

  /** The agent inside, as soon as it answers; gives up at once when the container has ended. */
  async #agent(name: string, reach: Reach, signal: AbortSignal): Promise<AgentSession> {
    const over = new AbortController();
    const stop = AbortSignal.any([signal, over.signal]);
    const watching = this.#watch(name, over.signal);
    try {
      return await Promise.race([this.#greet(name, reach, stop), watching]);
    } catch (error) {
      if (signal.aborted) {
        throw new SandboxerError('SBX_CANCELLED', 'It was given up before the agent answered.', {
          backend: BACKEND,
          creation: 'maybe_created',
        });
      }
      throw failed(error);
    } finally {
      over.abort();
      watching.catch(() => {});
    }
  }

  async #greet(name: string, reach: Reach, signal: AbortSignal): Promise<AgentSession> {
    const until = performance.now() + CALL_MS;
    for (;;) {
      const left = Math.max(1, until - performance.now());
      const options = { backend: BACKEND, signal, greetMs: left };
      const stream =
        reach.channel === 'call'
          ? await (await this.#door(reach.door)).take(signal, left)
          : await openExecStream(this.#parts.client, name, [INSIDE.agent, '--relay', INSIDE.relay], signal);
      try {
        return await connectAgent(stream, options);
      } catch (error) {
        // A connection from before a restart, or an agent that does not listen yet.
        if (signal.aborted || performance.now() >= until) throw error;
        await sleep(20, undefined, { signal }).catch(() => {});
      }
    }
  }

  /** Rejects when the container is not running any more; resolves never. */
  async #watch(name: string, over: AbortSignal): Promise<never> {
    for (;;) {
      await sleep(LOOK_MS, undefined, { signal: over, ref: false });
      const container = await this.#parts.containers.find(name, over).catch(() => undefined);
      if (container === undefined) continue;
      if (container === null) throw lost('The engine no longer has its container.');
      const { Running, ExitCode, Error: why } = container.State;
      if (!Running) throw lost(`Its container ended with ${ExitCode}${why === '' ? '' : `: ${why}`}.`);
    }
  }

  #door(name: string): Promise<AgentDoor> {
    let door = this.#doors.get(name);
    if (door === undefined) {
      door = AgentDoor.open(this.#parts.options.directory, name);
      door.catch(() => this.#doors.delete(name));
      this.#doors.set(name, door);
    }
    return door;
  }

  async #removeDoor(name: string): Promise<void> {
    if (!DOOR.test(name)) return;
    const door = this.#doors.get(name);
    this.#doors.delete(name);
    if (door !== undefined) (await door.catch(() => null))?.close();
    rmSync(join(this.#parts.options.directory, name), { recursive: true, force: true });
  }

  #canBeWarm({ recipe, secrets }: ProvisionSpec): boolean {
    const { resources, inputs } = recipe;
    return (
      recipe.image === 'host' &&
      recipe.isolation === 'container' &&
      recipe.persistence === 'ephemeral' &&
      recipe.network.default === 'deny' &&
      secrets.length === 0 &&
      resources.open_files === null &&
      resources.disk_mb === null &&
      inputs.read_only_root !== true &&
      inputs.warm !== false
    );
  }

  /** One that runs already gets this name. `false` when there is none. */
  async #claim(name: string, { recipe }: ProvisionSpec, facts: EngineFacts): Promise<boolean> {
    for (let one = this.#warm.take(); one !== null; one = this.#warm.take()) {
      if (!one.agent.isLost && (await this.#rename(one, name))) {
        const { cpu, memory_mb, pids } = recipe.resources;
        if (cpu !== null || memory_mb !== null || pids !== null) {
          await this.#parts.containers.limit(name, limitFields(recipe.resources, facts, this.#parts.options));
        }
        this.#reach.set(name, one.reach);
        this.#kept.keep(name, this.#judged(one.agent, recipe.variables));
        return true;
      }
      await one.agent.close();
      await this.#parts.containers.remove(one.name).catch(() => {});
      await this.#removeDoor(one.reach.door);
    }
    return false;
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
    const facts = await this.#parts.facts();
    const signal = new AbortController().signal;
    const channel = this.#channelFor('container');
    const silent = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
    const clock = { now: () => Date.now(), sleep: async () => {} };
    const { image, user } = await images.ready('host', channel, { signal, log: silent, clock, host: null });
    const name = warmName(owner, id.replace(/^warm-/, ''));
    const door = randomBytes(8).toString('hex');
    const reach: Reach = { channel, door, keep: false, secrets: false, isolation: 'container' };
    const none = { cpu: null, memory_mb: null, disk_mb: null, pids: null, open_files: null, gpu: null };
    const plan = await this.#plan({
      kind: 'warm',
      owner,
      image,
      user,
      channel,
      door,
      isolation: 'container',
      keep: false,
      secrets: false,
      readOnlyRoot: false,
      openNetwork: false,
      resources: none,
    });
    try {
      await containers.create(name, containerConfig(plan, facts, options));
      await containers.start(name);
      return { name, reach, agent: await this.#agent(name, reach, signal) };
    } catch (error) {
      await containers.remove(name).catch(() => {});
      await this.#removeDoor(door);
      throw error;
    }
  }

  /** What an earlier process has left: containers that nobody can ask for, and doors without a container. */
  async #sweep(owner: string): Promise<void> {
    const all = await this.#parts.containers.list(owner);
    const doors = new Set(all.map(({ labels }) => labels[LABEL.door]));
    for (const { name, labels } of all) {
      if (!isWarmName(name)) continue;
      await this.#parts.containers.remove(name).catch(() => {});
      doors.delete(labels[LABEL.door]);
    }
    for (const name of this.#doorsOnDisk()) {
      if (!doors.has(name) && !this.#doors.has(name)) await this.#removeDoor(name);
    }
    this.#warm.fill();
  }

  #doorsOnDisk(): string[] {
    try {
      return readdirSync(this.#parts.options.directory);
    } catch {
      return [];
    }
  }
}
