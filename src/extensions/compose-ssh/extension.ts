import { setTimeout as sleep } from 'node:timers/promises';
import { KeyedMutex } from '../../async/keyed-mutex.ts';
import { SandboxerError } from '../../contract/errors/errors.ts';
import type { ExtensionHealth } from '../../contract/extensions/extension.ts';
import type { StackPlan } from '../../contract/sandboxes/stack-plan.ts';
import type { Json } from '../../contract/values/json.ts';
import type { PauseKind } from '../../contract/values/state.ts';
import { isoTime } from '../../core/ports/clock.ts';
import type {
  CanaryKit,
  CleanupReport,
  Extension,
  ExtensionContext,
  ExtensionHeader,
  Handle,
  Owned,
  OwnedSnapshot,
  PlacementHost,
  ProvisionSpec,
  Ready,
  SnapshotSpec,
  TakenSnapshot,
  TeardownTarget,
  Unowned,
} from '../../core/ports/extension.ts';
import type { SshAccess } from '../../core/ports/host-access.ts';
import type { SandboxSession } from '../../core/ports/session.ts';
import { refuseMisfit } from '../../core/routing/refuse-misfit.ts';
import type { Channel } from '../shared/channel/channel.ts';
import { KeptChannels } from '../shared/channel/kept-channels.ts';
import { hostReachability } from '../shared/ssh/host-reachability.ts';
import type { SshHost } from '../shared/ssh/ssh-host.ts';
import { SshHosts } from '../shared/ssh/ssh-hosts.ts';
import type { AgentBinaries } from '../shared/ssh/upload-agent.ts';
import { uploadAgent } from '../shared/ssh/upload-agent.ts';
import { GATEWAY } from './compose/plan/plan-stack.ts';
import type { ComposeOptions } from './config.ts';
import { DEFAULT_DIRECTORY, DEFAULT_POOL } from './config.ts';
import { handles } from './handle.ts';
import { abortable } from './remote/abortable.ts';
import type { RootlessFinding } from './remote/engine.ts';
import { checkEngine, chooseEngine, engineNote, enginesText, proveRootless } from './remote/engine.ts';
import type { EngineWish } from './remote/engine-record.ts';
import { BACKEND, givenUp } from './remote/failure.ts';
import { markerOf } from './remote/labels.ts';
import type { MarkedStack } from './remote/marked-stacks.ts';
import { stampOf } from './remote/marked-stacks.ts';
import type { HostPlace, Uploaded } from './remote/remote-stacks.ts';
import { gatewayImageOf, RemoteStacks, stackDirectory } from './remote/remote-stacks.ts';
import type { StackHandle } from './remote/stack-handle.ts';
import { projectOf } from './remote/stack-handle.ts';
import type { ContainerState } from './remote/stack-state.ts';
import { servicesOf, waitedFor } from './remote/stack-state.ts';
import { ComposeSession } from './session/compose-session.ts';
import { openChannel, runningOf, serviceChannel } from './session/service-channel.ts';
import type { Seed } from './snapshots/remote-snapshots.ts';
import { RemoteSnapshots, seedOf } from './snapshots/remote-snapshots.ts';
import type { KeptSnapshot } from './snapshots/snapshot-marker.ts';
import { AnalysedStack } from './stack/analyse-stack.ts';
import { canaryStack } from './stack/canary-stack.ts';
import { makeStack } from './stack/make-stack.ts';
import { plannedStack } from './stack/planned-stack.ts';
import { shipTree } from './stack/ship-tree.ts';
import { endpointsOf, noneRunning, notComing } from './stack/stack-report.ts';

const LOOK_MS = 500;
const OPEN_MS = 60_000;
const FRESH_MS = 1_000;
const NEVER = new AbortController().signal;

interface Reached {
  readonly host: PlacementHost;
  readonly access: SshAccess;
  readonly stacks: RemoteStacks;
  readonly place: HostPlace;
}

export class ComposeExtension implements Extension {
  readonly header: ExtensionHeader;
  readonly #options: ComposeOptions;
  readonly #agents: AgentBinaries;
  readonly #hosts: SshHosts;
  readonly #places = new WeakMap<SshHost, Promise<HostPlace>>();
  readonly #mutex = new KeyedMutex();
  readonly #kept = new KeptChannels();
  /** Container states seen when a stack came up, for the inspection that follows at once. */
  readonly #fresh = new Map<string, { readonly states: readonly ContainerState[]; readonly at: number }>();

  constructor(header: ExtensionHeader, options: ComposeOptions, agents: AgentBinaries) {
    this.header = header;
    this.#options = options;
    this.#agents = agents;
    this.#hosts = new SshHosts(options.ssh);
  }

  async probe(ctx: ExtensionContext): Promise<ExtensionHealth> {
    const checked_at = isoTime(ctx.clock.now());
    if (ctx.host === null) {
      const detail = 'Stacks run on registered hosts; each is probed by itself.';
      return { status: 'healthy', detail, checked_at, checks: [] };
    }
    try {
      const { place } = await this.#reach(ctx, true);
      const detail = `${enginesText(place)}, compose ${place.generation} (${place.composeVersion})`;
      return { status: 'healthy', detail, checked_at, checks: [] };
    } catch (error) {
      ctx.signal.throwIfAborted();
      const detail = error instanceof SandboxerError ? error.detail : 'The host cannot be used.';
      const fix = error instanceof SandboxerError ? error.remedy : null;
      return {
        status: 'unhealthy',
        detail,
        checked_at,
        checks: [{ name: ctx.host.id, ok: false, detail, fix }],
      };
    }
  }

  async planStack(spec: ProvisionSpec, signal: AbortSignal): Promise<StackPlan> {
    return await plannedStack(spec, signal);
  }

  async provision(spec: ProvisionSpec, ctx: ExtensionContext): Promise<Handle> {
    refuseMisfit(this.header, spec);
    if (ctx.signal.aborted) throw givenUp(ctx.signal, 'not_created');
    return await this.#mutex.run(projectOf(spec.stamp), async () => {
      if (ctx.signal.aborted) throw givenUp(ctx.signal, 'not_created');
      const stack = await AnalysedStack.of(spec, ctx.signal);
      const ship = async (project: string, marker: string, { stacks, place }: Reached) => {
        const { resources, elevated } = spec.recipe;
        const demand = { resources, elevated, declared: stack.declaredLimits };
        const { record, why } = chooseEngine(place, this.#wish, demand);
        const uploaded = await stacks.upload(
          place,
          { project, marker, engine: record },
          {
            signal: ctx.signal,
            stdin: shipTree(spec.inputs, stack, ctx.signal),
          },
        );
        return { ...uploaded, note: why };
      };
      return await abortable(this.#make(spec, stack, ctx, ship), ctx.signal, 'maybe_created');
    });
  }

  /** Restores from a snapshot on this host: tree, volumes and images are as they were, everything else is as in `provision`. */
  async restore(spec: ProvisionSpec, ref: Json, ctx: ExtensionContext): Promise<Handle> {
    return await this.#grow(spec, ctx, async () => seedOf(ref));
  }

  async fork(source: Handle, spec: ProvisionSpec, ctx: ExtensionContext): Promise<Handle> {
    const stack = handles.read(source);
    return await this.#grow(spec, ctx, async ({ stacks, place }) => {
      const marker = markerOf(spec.stamp, ctx.clock.now());
      const snapshots = new RemoteSnapshots(stacks.host);
      const target = { project: projectOf(spec.stamp), marker, signal: ctx.signal };
      return await snapshots.fork(place, stack, target);
    });
  }

  async snapshot(handle: Handle, spec: SnapshotSpec, ctx: ExtensionContext): Promise<TakenSnapshot> {
    const { stacks, place } = await this.#reach(ctx);
    const snapshots = new RemoteSnapshots(stacks.host);
    return await this.#mutex.run(spec.snapshotId, () =>
      snapshots.take(place, handles.read(handle), spec, ctx.signal),
    );
  }

  async *listSnapshots(owner: string, ctx: ExtensionContext): AsyncIterable<OwnedSnapshot> {
    for (const { owner: markedBy, snapshotId, createdAt, parts } of await this.#keptSnapshots(ctx))
      if (markedBy === owner && snapshotId !== null) yield { snapshotId, createdAt, parts };
  }

  async deleteSnapshot(_ref: Json | null, spec: SnapshotSpec, ctx: ExtensionContext): Promise<void> {
    const { stacks, place } = await this.#reach(ctx);
    await new RemoteSnapshots(stacks.host).forget(place, spec, ctx.signal);
  }

  async #grow(
    spec: ProvisionSpec,
    ctx: ExtensionContext,
    seedFor: (reached: Reached) => Promise<Seed | StackHandle>,
  ): Promise<Handle> {
    refuseMisfit(this.header, spec);
    const { signal } = ctx;
    if (signal.aborted) throw givenUp(signal, 'not_created');
    return await this.#mutex.run(projectOf(spec.stamp), async () => {
      const reached = await this.#reach(ctx);
      const seed = await seedFor(reached);
      if ('project' in seed) return handles.write(seed);
      const snapshots = new RemoteSnapshots(reached.stacks.host);
      const stack = await AnalysedStack.of({ ...spec, inputs: snapshots.trees(seed) }, signal, true);
      const ship = (project: string, marker: string) =>
        snapshots.plant(reached.place, { project, marker }, seed, { signal });
      return await abortable(this.#make(spec, stack, ctx, ship), signal, 'maybe_created');
    });
  }

  async #make(
    spec: ProvisionSpec,
    stack: AnalysedStack,
    ctx: ExtensionContext,
    ship: (project: string, marker: string, reached: Reached) => Promise<Uploaded>,
  ): Promise<Handle> {
    const { signal } = ctx;
    const reached = await this.#reach(ctx);
    const { stacks, place } = reached;
    stack.checkFor(place.composeVersion);
    const agent = await uploadAgent(stacks.host, place.root, this.#agents, signal);
    const uploaded = await ship(projectOf(spec.stamp), markerOf(spec.stamp, ctx.clock.now()), reached);
    if (uploaded.handle !== null) return handles.write(uploaded.handle);
    checkEngine(uploaded.engine, place, this.#wish, spec.recipe.resources);
    const ground = { stacks, place, agent, pool: this.#options.addressPool ?? DEFAULT_POOL };
    const { handle, states } = await makeStack(spec, stack, ground, { uploaded, signal });
    this.#fresh.set(handle.project, { states, at: Date.now() });
    return handles.write(handle);
  }

  async waitReady(handle: Handle, ctx: ExtensionContext): Promise<Ready> {
    const stack = handles.read(handle);
    const { stacks, place } = await this.#reach(ctx);
    const states = await this.#settled(stack, stacks, place, ctx);
    const container = runningOf(stack.service, states);
    const channel = await openChannel(
      stacks,
      {
        stack: stackDirectory(place, stack.project),
        container: container ?? noneRunning(stack, states),
      },
      ctx.signal,
    );
    this.#kept.keep(stack.project, channel);
    const endpoints = endpointsOf(stack, states);
    return {
      reachability: {
        exec_url: null,
        ...(await hostReachability(stacks.host)),
        endpoints,
        services: servicesOf(states.filter(({ service }) => service !== GATEWAY)),
      },
      isolation: 'container',
      notes: [...stack.notes, engineNote(stack.engine)],
    };
  }

  async connect(handle: Handle, ctx: ExtensionContext): Promise<SandboxSession> {
    const stack = handles.read(handle);
    const open = async (service: string, signal: AbortSignal): Promise<Channel> => {
      const { stacks, place } = await this.#reach(ctx);
      return await serviceChannel(stacks, place, { project: stack.project, service, signal });
    };
    const first = this.#kept.take(stack.project) ?? (await open(stack.service, ctx.signal));
    return new ComposeSession(first, stack, {
      open: (service) => open(service, AbortSignal.timeout(OPEN_MS)),
      logs: async (service, options) => {
        const { stacks, place } = await this.#reach(ctx);
        return await stacks.log(place, stack.project, service, options);
      },
    });
  }

  async teardown({ stamp, handle }: TeardownTarget, ctx: ExtensionContext): Promise<CleanupReport> {
    if (ctx.signal.aborted) throw givenUp(ctx.signal, 'created');
    const project = projectOf(stamp);
    this.#kept.drop(project);
    this.#fresh.delete(project);
    const keepImages = handle !== null && handles.read(handle).keep_images;
    const { stacks, place } = await this.#reach(ctx);
    const { removed, left } = await stacks.down(place, stamp, keepImages, {
      signal: ctx.signal,
      creation: 'created',
    });
    return {
      gone: left.length === 0,
      removed,
      remaining: left.map((what) => ({ what, reason: 'The engine or the disk of the host still has it.' })),
    };
  }

  async *listOwned(owner: string, ctx: ExtensionContext): AsyncIterable<Owned> {
    for (const stack of await this.#marked(ctx)) {
      const stamp = stampOf(stack);
      if (stamp?.owner === owner)
        yield { stamp, handle: null, createdAt: stack.createdAt, parts: stack.parts };
    }
  }

  async *listUnowned(owner: string, ctx: ExtensionContext): AsyncIterable<Unowned> {
    for (const stack of await this.#marked(ctx)) {
      if (stampOf(stack)?.owner === owner) continue;
      const { createdAt, parts, attemptId } = stack;
      yield { owner: stack.owner, what: attemptId ?? parts.join(', '), parts, createdAt };
    }
    for (const { owner: markedBy, snapshotId, createdAt, parts } of await this.#keptSnapshots(ctx)) {
      if (markedBy === owner) continue;
      yield { owner: markedBy, what: `snapshot ${snapshotId ?? parts.join(', ')}`, parts, createdAt };
    }
  }

  async canary(ctx: ExtensionContext): Promise<CanaryKit> {
    const { stacks } = await this.#reach(ctx, true);
    const { stdout } = await stacks.host.run(['uname', '-m'], {
      signal: ctx.signal,
      creation: 'not_created',
    });
    return canaryStack(this.#agents, stdout.toString().trim());
  }

  async pause(handle: Handle, ctx: ExtensionContext): Promise<PauseKind> {
    const { project } = handles.read(handle);
    const { stacks, place } = await this.#reach(ctx);
    await stacks.freeze(place, project, true, { signal: ctx.signal });
    return 'frozen';
  }

  async resume(handle: Handle, ctx: ExtensionContext): Promise<void> {
    const { project } = handles.read(handle);
    const { stacks, place } = await this.#reach(ctx);
    await stacks.freeze(place, project, false, { signal: ctx.signal });
  }

  async close(): Promise<void> {
    this.#kept.close();
    await this.#hosts.close();
  }

  async #keptSnapshots(ctx: ExtensionContext): Promise<readonly KeptSnapshot[]> {
    if (ctx.host === null) return [];
    const { stacks, place } = await this.#reach(ctx);
    return await new RemoteSnapshots(stacks.host).list(place, ctx.signal);
  }

  async #marked(ctx: ExtensionContext): Promise<readonly MarkedStack[]> {
    if (ctx.host === null) return [];
    const { stacks, place } = await this.#reach(ctx);
    return await stacks.marked(place, { signal: ctx.signal });
  }

  /** Returns the host of the sandbox with its facts. */
  async #reach(ctx: ExtensionContext, afresh = false): Promise<Reached> {
    const { host } = ctx;
    const access = host?.ssh ?? null;
    if (host === null || access === null) {
      throw new SandboxerError('SBX_UNSUPPORTED', 'A compose stack needs a host that is reached by ssh.', {
        backend: BACKEND,
        creation: 'not_created',
        remedy: 'Register one with "sandboxer hosts add".',
      });
    }
    const ssh = this.#hosts.get(host.id, access);
    const stacks = new RemoteStacks(ssh);
    if (afresh) this.#places.delete(ssh);
    const known =
      this.#places.get(ssh) ??
      stacks.place(this.#options.directory ?? DEFAULT_DIRECTORY, { signal: NEVER }, (root) =>
        this.#rootlessOf(ssh, root),
      );
    this.#places.set(ssh, known);
    known.catch(() => this.#places.delete(ssh));
    return { host, access, stacks, place: await abortable(known, ctx.signal, 'not_created') };
  }

  async #rootlessOf(ssh: SshHost, root: string): Promise<RootlessFinding> {
    if (this.#wish === 'rootful') return { missing: 'The configuration names the rootful engine.' };
    const agent = () => uploadAgent(ssh, root, this.#agents, NEVER);
    return await proveRootless(ssh, { root, agent, imageOf: gatewayImageOf }, NEVER);
  }

  get #wish(): EngineWish {
    return this.#options.engine ?? 'auto';
  }

  #justSeen(project: string): readonly ContainerState[] | null {
    const seen = this.#fresh.get(project);
    this.#fresh.delete(project);
    return seen !== undefined && Date.now() - seen.at < FRESH_MS ? seen.states : null;
  }

  /** Returns the state once no change is under way and the expected change has come. */
  async #settled(
    stack: StackHandle,
    stacks: RemoteStacks,
    place: HostPlace,
    ctx: ExtensionContext,
  ): Promise<readonly ContainerState[]> {
    const until = Date.now() + stack.wait_seconds * 1000;
    for (;;) {
      const states =
        this.#justSeen(stack.project) ??
        (await stacks.state(place, stack.project, { signal: ctx.signal, creation: 'created' }));
      const waiting = stack.wait_for.filter((name) => waitedFor(name, states) !== 'yes');
      if (waiting.length === 0) return states;
      const never = waiting.find((name) => waitedFor(name, states) === 'never');
      if (never !== undefined || Date.now() >= until) throw notComing(never ?? waiting[0] ?? '', states);
      await sleep(LOOK_MS, undefined, { signal: ctx.signal });
    }
  }
}
