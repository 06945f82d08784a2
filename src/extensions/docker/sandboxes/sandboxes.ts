/** Makes running containers from specs, opens their channels, and ends them. */

import { KeyedMutex } from '../../../async/keyed-mutex.ts';
import { SandboxerError } from '../../../contract/errors/errors.ts';
import type { ExtensionContext, ProvisionSpec, ResolvedSecret } from '../../../core/ports/extension.ts';
import type { Channel } from '../../shared/channel/channel.ts';
import { judgedChannel } from '../../shared/channel/judged-channel.ts';
import { KeptChannels } from '../../shared/channel/kept-channels.ts';
import { deliverSecrets, secretEnvironment } from '../../shared/channel/secret-files.ts';
import { AgentDoors } from '../channel/agent-doors.ts';
import { agentInside } from '../channel/agent-inside.ts';
import type { ChannelChoice } from '../channel/channel-choice.ts';
import { isStronger, lesserOf } from '../channel/channel-choice.ts';
import type { Reach } from '../channel/reach.ts';
import { reachOf } from '../channel/reach.ts';
import type { ChannelKind, ContainerPlan } from '../containers/container-config.ts';
import { containerConfig, INSIDE } from '../containers/container-config.ts';
import type { Containers, Listed } from '../containers/containers.ts';
import { wantsReadOnlyRoot } from '../containers/docker-inputs.ts';
import type { Named } from '../containers/labels.ts';
import { containerName, doorOf, LABEL, stampIn } from '../containers/labels.ts';
import type { DockerOptions } from '../containers/options.ts';
import type { EngineClient } from '../engine/engine-client.ts';
import { BACKEND, EngineError, failed, isMissing, lost } from '../engine/engine-error.ts';
import type { EngineFacts } from '../engine/engine-facts.ts';
import type { Container } from '../engine/engine-replies.ts';
import { ExecSession } from '../exec-api/exec-session.ts';
import type { AgentFit, Images, ReadyImage } from '../images/images.ts';
import type { SourceImage } from '../images/snapshot-images.ts';
import type { Levels } from '../inspect/levels.ts';
import { runtimeFor } from '../inspect/levels.ts';
import { oomKillsInside } from './oom-kills.ts';
import type { WarmOne } from './warm-containers.ts';
import { canBeWarm, WarmContainers } from './warm-containers.ts';

export interface Parts {
  readonly options: DockerOptions;
  readonly client: EngineClient;
  readonly containers: Containers;
  readonly images: Images;
  readonly choice: ChannelChoice;
  readonly agentPath: string;
  readonly levels: Levels;
  facts(signal?: AbortSignal): Promise<EngineFacts>;
}

/** Makes the container once more for a lesser channel, when the engine could not start it or the agent ended. */
type Remake = (error: unknown) => Promise<boolean>;

interface Beginning {
  readonly secrets: readonly ResolvedSecret[];
  readonly variables: Named['variables'];
  readonly remake?: Remake;
}

function ended({ State: { Error: why } }: Container): SandboxerError {
  return lost(`Its container has ended${why === '' ? '' : `: ${why}`}.`);
}

interface Assembly {
  readonly source: SourceImage | null;
  readonly facts: EngineFacts;
  readonly ctx: ExtensionContext;
  readonly most: ChannelKind;
}

export class Sandboxes {
  readonly #parts: Parts;
  readonly #mutex = new KeyedMutex();
  readonly #doors: AgentDoors;
  readonly #reach = new Map<string, Reach>();
  /** Starts under way, until the agent has answered and has the secrets. */
  readonly #starting = new Map<string, { readonly done: Promise<void>; readonly stop: AbortController }>();
  readonly #kept = new KeptChannels();
  readonly #warm: WarmContainers;
  #owner: string | null = null;

  constructor(parts: Parts) {
    const { options, containers, images, choice } = parts;
    this.#parts = parts;
    this.#doors = new AgentDoors(options.directory);
    this.#warm = new WarmContainers({
      options,
      containers,
      images,
      facts: () => parts.facts(),
      channel: ({ architecture }) => choice.for('container', architecture),
      plan: (plan) => this.#plan(plan),
      agent: (name, reach, signal) => this.#agent(name, reach, signal),
      removeDoor: (door) => this.#doors.remove(door),
    });
  }

  async inTurn<T>(name: string, work: () => Promise<T>): Promise<T> {
    return await this.#mutex.run(name, work);
  }

  /** Creates it under its name and lets the start go on in the background: `channel` waits for it. */
  async make(spec: ProvisionSpec, source: SourceImage | null, ctx: ExtensionContext): Promise<void> {
    const facts = await this.#parts.facts(ctx.signal);
    this.meet(spec.stamp.owner);
    const name = containerName(spec.stamp);
    if (source === null && canBeWarm(spec)) {
      const one = await this.#warm.claim(name, spec, facts);
      if (one !== null) return this.#claimed(name, one, spec.recipe.variables);
    }
    let most: ChannelKind = 'call';
    const build = () => this.#create(name, spec, { source, facts, ctx, most });
    const { variables } = spec.recipe;
    if (await build()) {
      const remake: Remake = async (error) => {
        const lesser = this.#lesser(spec, source, this.reach(name).channel, error);
        if (lesser === null) return false;
        most = lesser;
        await this.#parts.containers.remove(name);
        return await build();
      };
      this.#begin(name, { secrets: spec.secrets, variables, remake });
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
    if (container.State.Status === 'created' && !this.#starting.has(name)) {
      this.#reach.set(name, reachOf(container.Config.Labels));
      this.#begin(name, { secrets: spec.secrets, variables });
    }
  }

  /** Unfreezes it, or starts it again from its disk with these secrets where it has stopped. */
  async resume(
    { name, stamp, variables }: Named,
    secrets: readonly ResolvedSecret[],
    signal: AbortSignal,
  ): Promise<void> {
    const container = await this.owned(name, stamp.owner, signal);
    if (container === null) throw lost('The engine no longer has its container.');
    if (container.State.Paused || container.State.Running) {
      await this.#parts.containers.resume(name, signal);
      return;
    }
    const reach = reachOf(container.Config.Labels);
    if (!reach.keep) throw ended(container);
    this.#reach.set(name, reach);
    if (!this.#starting.has(name)) this.#begin(name, { secrets, variables });
    await this.#starting.get(name)?.done;
  }

  /** Returns the container of this name, if it has this owner. */
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

  /** Opens a channel, once the container runs; a stopped persistent one is started again. */
  async channel({ name, stamp, variables }: Named, signal: AbortSignal): Promise<Channel> {
    await this.#starting.get(name)?.done;
    const kept = this.#kept.take(name);
    if (kept !== null) return kept;
    let reach = this.#reach.get(name);
    const called = reach?.channel === 'call' && (await this.#doors.open(reach.door)).hasCaller;
    if (reach === undefined || !called) reach = await this.#revive({ name, stamp, variables }, signal);
    return await this.#open(name, reach, variables, signal);
  }

  /** Returns how its container was made, where it is known. */
  reach(name: string): Pick<Reach, 'isolation' | 'channel'> {
    return this.#reach.get(name) ?? { isolation: 'container', channel: 'call' };
  }

  /** Keeps the channel that proved it ready for the next request. */
  keep(name: string, channel: Channel): void {
    this.#kept.keep(name, channel);
  }

  /** Ends and removes the container. A missing one is success. */
  async end(name: string, owner: string, signal: AbortSignal): Promise<Container | null> {
    const starting = this.#starting.get(name);
    starting?.stop.abort();
    await starting?.done.catch(() => {});
    const container = await this.owned(name, owner, signal);
    this.#kept.drop(name);
    if (container !== null) await this.#parts.containers.remove(container.Id);
    const door = container?.Config.Labels[LABEL.door] ?? doorOf(name);
    this.#reach.delete(name);
    await this.#doors.remove(door);
    return container;
  }

  /** Sets the owner; from here on containers that an earlier process started ahead can be removed. */
  meet(owner: string): void {
    if (this.#owner !== null) return;
    this.#owner = owner;
    void this.#sweep(owner).catch(() => {});
  }

  async close(): Promise<void> {
    await this.#warm.close();
    this.#kept.close();
    await this.#doors.close();
  }

  #claimed(name: string, { reach, agent }: WarmOne, variables: Named['variables']): void {
    this.#reach.set(name, reach);
    this.#kept.keep(name, this.#judged(agent, variables));
  }

  async #create(name: string, spec: ProvisionSpec, { source, facts, ctx, most }: Assembly): Promise<boolean> {
    const { recipe } = spec;
    let allowed = most;
    let tried: ChannelKind = 'call';
    const build = async (): Promise<boolean> => {
      const wanted = this.#parts.choice.for(recipe.isolation, facts.architecture);
      const fit = { channel: lesserOf(wanted, allowed), readable: isStronger(recipe.isolation) };
      const { image, user, channel } = await this.#imageFor(recipe.image, source, fit, ctx);
      tried = channel;
      const plan = await this.#plan({
        kind: 'sandbox',
        owner: spec.stamp.owner,
        image,
        user,
        channel,
        door: doorOf(name),
        isolation: recipe.isolation,
        runtime: runtimeFor(this.#parts.levels, recipe.isolation),
        keep: recipe.persistence !== 'ephemeral',
        secrets: spec.secrets.length > 0,
        readOnlyRoot: wantsReadOnlyRoot(recipe),
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
      const lesser = this.#lesser(spec, source, tried, error);
      if (lesser !== null) {
        allowed = lesser;
        return await build();
      }
      if (!isMissing(error)) throw failed(error, { creation: 'not_created' });
      this.#parts.images.forget();
      return await build();
    }
  }

  async #imageFor(
    image: string,
    source: SourceImage | null,
    fit: AgentFit,
    ctx: ExtensionContext,
  ): Promise<ReadyImage> {
    const { channel, readable } = fit;
    if (source === null) return await this.#parts.images.ready(image, fit, ctx);
    if (source.channel === 'exec' || channel !== 'relay') {
      return { ...source, channel: source.channel === 'exec' ? 'exec' : channel };
    }
    if (source.channel === channel && !readable) return { ...source, channel };
    const found = await this.#parts.images.find(source.image, ctx.signal);
    if (found === null) throw new EngineError(404, 'The snapshot has gone.');
    return { ...(await this.#parts.images.prepare(found, fit, ctx.signal)), user: source.user };
  }

  async #plan(plan: Omit<ContainerPlan, 'binds'>): Promise<ContainerPlan> {
    if (plan.channel !== 'call') return { ...plan, binds: null };
    const { directory } = await this.#doors.open(plan.door);
    return { ...plan, binds: { agent: this.#parts.agentPath, door: directory } };
  }

  #begin(name: string, beginning: Beginning): void {
    const stop = new AbortController();
    const done = this.#start(name, beginning, stop.signal).finally(() => {
      if (this.#starting.get(name)?.done === done) this.#starting.delete(name);
    });
    // A request that waits for it gets the error; without one it must not be an unhandled rejection.
    done.catch(() => {});
    this.#starting.set(name, { done, stop });
  }

  /** Starts it. Each further attempt is for a channel that asks less. */
  async #start(name: string, beginning: Beginning, signal: AbortSignal): Promise<void> {
    for (;;) {
      try {
        await this.#openDoor(name);
        await this.#parts.containers.start(name);
        await this.#greet(name, beginning, signal);
        return;
      } catch (error) {
        const again = beginning.remake !== undefined && !signal.aborted && (await beginning.remake(error));
        if (!again) throw failed(error, { creation: 'maybe_created' });
      }
    }
  }

  /** Opens the door before any program runs in the container: the agent, as its first process, is then the one that finds it. */
  async #openDoor(name: string): Promise<void> {
    const reach = this.#reach.get(name);
    if (reach?.channel === 'call') (await this.#doors.open(reach.door)).makeReachable();
  }

  /** Opens the first channel that the agent answers, which brings the secrets, and keeps it for the next request. */
  async #greet(name: string, { secrets, variables }: Beginning, signal: AbortSignal): Promise<void> {
    const reach = this.#reach.get(name);
    if (reach === undefined) throw lost('It has ended.');
    if (reach.channel === 'exec') {
      if (secrets.length > 0) await this.#engineSession(name).deliver(secrets);
      return;
    }
    if (secrets.length > 0) await deliverSecrets(await this.#agent(name, reach, signal), secrets);
    this.keep(name, await this.#open(name, reach, variables, signal));
  }

  /** Returns the next channel to try, which asks less of engine and image; `null` when there is none. */
  #lesser(
    { recipe }: ProvisionSpec,
    source: SourceImage | null,
    tried: ChannelKind,
    error: unknown,
  ): ChannelKind | null {
    const lesser = this.#parts.choice.lesser(recipe.isolation, tried, error);
    if (lesser === null) return null;
    if (!lesser.everywhere && source === null) this.#parts.images.lower(recipe.image, lesser.channel);
    return lesser.channel;
  }

  /** Starts a stopped container where it may be started: not where its secrets were in its memory alone. */
  async #revive({ name, stamp, variables }: Named, signal: AbortSignal): Promise<Reach> {
    const container = await this.owned(name, stamp.owner, signal);
    if (container === null) throw lost('The engine no longer has its container.');
    const reach = reachOf(container.Config.Labels);
    this.#reach.set(name, reach);
    const { Status, Running } = container.State;
    if (Running) return reach;
    if (Status !== 'created' && !reach.keep) throw ended(container);
    if (reach.secrets && !this.#starting.has(name)) {
      throw new SandboxerError('SBX_INVALID_STATE', 'It has stopped, with its disk.', {
        backend: BACKEND,
        remedy: 'Resume it: sandboxer resume ID.',
      });
    }
    if (!this.#starting.has(name)) this.#begin(name, { secrets: [], variables });
    await this.#starting.get(name)?.done;
    return reach;
  }

  async #open(
    name: string,
    reach: Reach,
    variables: Named['variables'],
    signal: AbortSignal,
  ): Promise<Channel> {
    if (reach.channel === 'exec') return this.#judged(this.#engineSession(name), variables);
    const agent = await this.#agent(name, reach, signal);
    const secrets = reach.secrets ? await secretEnvironment(agent) : {};
    return this.#judged(agent, { ...variables, ...secrets });
  }

  #engineSession(name: string): ExecSession {
    return new ExecSession(this.#parts.client, name, INSIDE.work);
  }

  #judged(session: WarmOne['agent'] | ExecSession, variables: Named['variables']): Channel {
    return judgedChannel(session, variables, { known: 0, count: () => oomKillsInside(session.files) });
  }

  async #agent(name: string, reach: Reach, signal: AbortSignal): Promise<WarmOne['agent']> {
    const { client, containers } = this.#parts;
    return await agentInside({ client, containers, doors: this.#doors }, name, reach, signal);
  }

  /** Removes the remains of an earlier process: unclaimed containers, and doors without a container. */
  async #sweep(owner: string): Promise<void> {
    const all = await this.#parts.containers.list(owner);
    await this.#warm.sweep(all);
    const living = all.filter(({ name }) => stampIn(name) !== null);
    await this.#doors.removeOthers(new Set(living.map(({ labels }) => labels[LABEL.door])));
    this.#warm.begin(owner);
  }
}
