import { SandboxerError } from '../../contract/errors/errors.ts';
import { IsolationLevel } from '../../contract/extensions/capability.ts';
import type { ExtensionHealth } from '../../contract/extensions/extension.ts';
import type { IsolationFacts } from '../../contract/extensions/isolation.ts';
import type { Json } from '../../contract/values/json.ts';
import type { PauseKind } from '../../contract/values/state.ts';
import type {
  CleanupReport,
  Extension,
  ExtensionContext,
  ExtensionHeader,
  Handle,
  Owned,
  OwnedSnapshot,
  ProvisionSpec,
  Ready,
  ResolvedSecret,
  SnapshotSpec,
  TakenSnapshot,
  TeardownTarget,
  Unowned,
} from '../../core/ports/extension.ts';
import type { SandboxSession } from '../../core/ports/session.ts';
import { refuseMisfit } from '../../core/routing/refuse-misfit.ts';
import { abortableFor } from '../shared/abortable-for.ts';
import type { ChannelChoice } from './channel/channel-choice.ts';
import type { ChannelKind } from './containers/container-config.ts';
import { Containers } from './containers/containers.ts';
import { containerName, LABEL, stampIn } from './containers/labels.ts';
import type { DockerOptions } from './containers/options.ts';
import { canLimitDisk } from './containers/options.ts';
import type { Endpoint } from './engine/endpoint.ts';
import { isLocal } from './engine/endpoint.ts';
import type { EngineClient } from './engine/engine-client.ts';
import { BACKEND, failed, lost } from './engine/engine-error.ts';
import type { EngineFacts } from './engine/engine-facts.ts';
import { findEngineFacts } from './engine/engine-facts.ts';
import type { Container } from './engine/engine-replies.ts';
import { handleOf, handles, readSnapshotRef } from './handle.ts';
import { Images } from './images/images.ts';
import type { SourceImage } from './images/snapshot-images.ts';
import { isSnapshotImage, SnapshotImages } from './images/snapshot-images.ts';
import { healthOf } from './inspect/health.ts';
import { isolationFacts } from './inspect/inspect-isolation.ts';
import type { Levels } from './inspect/levels.ts';
import { Sandboxes } from './sandboxes/sandboxes.ts';

const abortable = abortableFor(BACKEND);

export interface DockerParts {
  readonly header: ExtensionHeader;
  readonly options: DockerOptions;
  readonly endpoint: Endpoint;
  readonly client: EngineClient;
  readonly facts: EngineFacts | null;
  readonly levels: Levels;
  readonly agentPath: string;
  readonly choice: ChannelChoice;
}

export class DockerExtension implements Extension {
  readonly header: ExtensionHeader;
  readonly #parts: DockerParts;
  readonly #client: EngineClient;
  readonly #containers: Containers;
  readonly #snapshots: SnapshotImages;
  readonly #sandboxes: Sandboxes;
  #facts: EngineFacts | null;

  constructor(parts: DockerParts) {
    this.header = parts.header;
    this.#parts = parts;
    this.#client = parts.client;
    this.#facts = parts.facts;
    this.#containers = new Containers(this.#client);
    this.#snapshots = new SnapshotImages(this.#client);
    const { options, agentPath, choice, levels } = parts;
    this.#sandboxes = new Sandboxes({
      options,
      client: this.#client,
      containers: this.#containers,
      images: new Images(this.#client, options, agentPath, choice),
      choice,
      agentPath,
      levels,
      facts: async (signal) => {
        this.#facts ??= await findEngineFacts(this.#client, signal);
        return this.#facts;
      },
    });
  }

  async probe(ctx: ExtensionContext): Promise<ExtensionHealth> {
    const { endpoint, options, agentPath, levels } = this.#parts;
    const parts = { client: this.#client, endpoint, options, agentPath, levels };
    const health = await healthOf(parts, ctx);
    if (health.facts !== null) this.#facts = health.facts;
    return health.health;
  }

  async provision(spec: ProvisionSpec, ctx: ExtensionContext): Promise<Handle> {
    return await this.#make(spec, ctx, async () => null);
  }

  async restore(spec: ProvisionSpec, ref: Json, ctx: ExtensionContext): Promise<Handle> {
    const image = readSnapshotRef(ref);
    return await this.#make(spec, ctx, async () => {
      const found = await this.#snapshots.find(image, ctx.signal);
      if (found?.owner === spec.stamp.owner) return found;
      throw new SandboxerError('SBX_NOT_FOUND', 'The engine no longer has the snapshot.', {
        backend: BACKEND,
        creation: 'not_created',
      });
    });
  }

  async fork(source: Handle, spec: ProvisionSpec, ctx: ExtensionContext): Promise<Handle> {
    const { name, stamp } = handles.read(source);
    const fork = containerName(spec.stamp);
    let image: string | null = null;
    const handle = await this.#make(spec, ctx, async () => {
      if ((await this.#sandboxes.owned(fork, spec.stamp.owner, ctx.signal)) !== null) return null;
      const container = await this.#running(name, stamp.owner, ctx.signal);
      image = await this.#snapshots.takeForFork(container, fork, spec.stamp.owner, ctx.signal);
      return await this.#snapshots.find(image, ctx.signal);
    });
    if (image !== null) await this.#snapshots.forget(image).catch(() => {});
    return handle;
  }

  async waitReady(handle: Handle, ctx: ExtensionContext): Promise<Ready> {
    const named = handles.read(handle);
    const channel = await abortable(this.#asked(this.#sandboxes.channel(named, ctx.signal)), ctx.signal);
    this.#sandboxes.keep(named.name, channel);
    const reach = this.#sandboxes.reach(named.name);
    return {
      reachability: { exec_url: null, ssh: null, tunnel_ref: null, endpoints: [], services: [] },
      isolation: reach.isolation,
      notes: this.#notes(reach.channel),
    };
  }

  async connect(handle: Handle, ctx: ExtensionContext): Promise<SandboxSession> {
    const channel = this.#asked(this.#sandboxes.channel(handles.read(handle), ctx.signal));
    return (await abortable(channel, ctx.signal)).session;
  }

  async teardown({ stamp }: TeardownTarget, ctx: ExtensionContext): Promise<CleanupReport> {
    const name = containerName(stamp);
    const report = this.#sandboxes.inTurn(name, async (): Promise<CleanupReport> => {
      const { owner } = stamp;
      try {
        const ended = await this.#sandboxes.end(name, owner, ctx.signal);
        const what = `container ${name}`;
        if ((await this.#sandboxes.owned(name, owner, ctx.signal)) !== null)
          return { gone: false, removed: [], remaining: [{ what, reason: 'The engine still has it.' }] };
        if (ended !== null && isSnapshotImage(ended.Config.Image))
          void this.#snapshots.collect(owner).catch(() => {});
        return { gone: true, removed: ended === null ? [] : [what], remaining: [] };
      } catch (error) {
        throw failed(error);
      }
    });
    return await abortable(report, ctx.signal);
  }

  async *listOwned(owner: string, ctx: ExtensionContext): AsyncIterable<Owned> {
    const all = await this.#sandboxes.list(owner, ctx.signal).catch((error: unknown) => {
      throw failed(error);
    });
    for (const { name, createdAt, labels, state } of all) {
      const stamp = stampIn(name);
      const parts = [`container ${name}`];
      const over = labels[LABEL.keep] === 'yes' ? 'stopped' : 'ended';
      const condition = state === 'exited' || state === 'dead' ? over : 'running';
      if (stamp !== null) yield { stamp, handle: handleOf(stamp), createdAt, condition, parts };
    }
  }

  async *listUnowned(owner: string, ctx: ExtensionContext): AsyncIterable<Unowned> {
    for (const { name, createdAt, labels } of await this.#asked(this.#containers.marked(ctx.signal))) {
      const markedBy = labels[LABEL.owner] || null;
      // Objects of this owner have a kind.
      if (markedBy === owner && labels[LABEL.kind] !== undefined) continue;
      const what = stampIn(name)?.attemptId ?? name;
      yield { owner: markedBy, what, parts: [`container ${name}`], createdAt };
    }
  }

  async inspectIsolation(handle: Handle, ctx: ExtensionContext): Promise<IsolationFacts> {
    const named = handles.read(handle);
    const container = await this.#running(named.name, named.stamp.owner, ctx.signal);
    if (container.State.Paused) {
      throw new SandboxerError('SBX_CONFLICT', 'It is paused: nothing inside can be asked.', {
        backend: BACKEND,
        remedy: 'Resume it first.',
      });
    }
    const { session } = await this.#asked(this.#sandboxes.channel(named, ctx.signal));
    try {
      const { files } = session;
      const facts = this.#facts ?? (await this.#asked(findEngineFacts(this.#client, ctx.signal)));
      if (files === undefined) throw lost('Its files cannot be read.');
      const level = IsolationLevel.parse(this.#sandboxes.reach(named.name).isolation);
      const local = isLocal(this.#parts.endpoint);
      return await isolationFacts({ session, files, container, facts, level, local });
    } finally {
      await session.close();
    }
  }

  async pause(handle: Handle, ctx: ExtensionContext): Promise<PauseKind> {
    const { name, stamp } = handles.read(handle);
    await this.#running(name, stamp.owner, ctx.signal);
    await this.#asked(this.#containers.pause(name, ctx.signal));
    return 'frozen';
  }

  async resume(
    handle: Handle,
    ctx: ExtensionContext,
    secrets: readonly ResolvedSecret[] = [],
  ): Promise<void> {
    const named = handles.read(handle);
    await this.#sandboxes.inTurn(named.name, () =>
      this.#asked(this.#sandboxes.resume(named, secrets, ctx.signal)),
    );
  }

  async snapshot(handle: Handle, spec: SnapshotSpec, ctx: ExtensionContext): Promise<TakenSnapshot> {
    const { name, stamp } = handles.read(handle);
    return await this.#sandboxes.inTurn(name, async () => {
      const container = await this.#running(name, stamp.owner, ctx.signal);
      return await this.#asked(this.#snapshots.take(container, spec, ctx.signal));
    });
  }

  listSnapshots(owner: string, ctx: ExtensionContext): AsyncIterable<OwnedSnapshot> {
    return this.#snapshots.list(owner, ctx.signal);
  }

  async deleteSnapshot(_ref: Json | null, spec: SnapshotSpec, ctx: ExtensionContext): Promise<void> {
    await this.#asked(this.#snapshots.delete(spec, ctx.signal));
  }

  async close(): Promise<void> {
    await this.#sandboxes.close();
    await this.#client.close();
  }

  async #make(
    spec: ProvisionSpec,
    ctx: ExtensionContext,
    sourceOf: () => Promise<SourceImage | null>,
  ): Promise<Handle> {
    refuseMisfit(this.header, spec);
    const { signal } = ctx;
    if (signal.aborted) {
      throw new SandboxerError('SBX_CANCELLED', 'It was given up before it began.', {
        backend: BACKEND,
        creation: 'not_created',
      });
    }
    const name = containerName(spec.stamp);
    const made = this.#sandboxes.inTurn(name, async () => {
      try {
        await this.#sandboxes.make(spec, await sourceOf(), ctx);
      } catch (error) {
        throw failed(error, { creation: 'maybe_created' });
      }
    });
    await abortable(made, signal);
    return handleOf(spec.stamp, spec.recipe.variables);
  }

  async #running(name: string, owner: string, signal: AbortSignal): Promise<Container> {
    const container = await this.#asked(this.#sandboxes.owned(name, owner, signal));
    if (container === null) throw lost('The engine no longer has its container.');
    return container;
  }

  async #asked<T>(work: Promise<T>): Promise<T> {
    return await work.catch((error: unknown) => {
      throw failed(error);
    });
  }

  /** Notes for the user: each a promise of the vector that holds here with a condition. */
  #notes(channel: ChannelKind): string[] {
    const facts = this.#facts;
    if (facts === null) return [];
    const notes: [boolean, string][] = [
      [
        channel === 'exec',
        'Its image cannot take the agent: the engine starts each program, and nothing can be left running, watched or dialled.',
      ],
      [
        !canLimitDisk(facts, this.#parts.options),
        'Its disk is limited only by the free space of the engine’s machine.',
      ],
      [!facts.memory, 'Its memory is not limited.'],
      [!facts.pids, 'The number of its processes is not limited.'],
      [!facts.seccomp, 'The engine filters no system calls.'],
      [
        !facts.userNamespaces && !facts.rootless,
        'Its user ids are those of the engine’s machine: the engine maps none. It runs as no root.',
      ],
    ];
    return notes.filter(([applies]) => applies).map(([, text]) => text);
  }
}
