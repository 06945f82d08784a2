import { existsSync } from 'node:fs';
import type { ExtensionHealth } from '../../contract/extensions/extension.ts';
import type { IsolationFacts } from '../../contract/extensions/isolation.ts';
import type { Json } from '../../contract/values/json.ts';
import type { PauseKind } from '../../contract/values/state.ts';
import type {
  CleanupReport,
  DebianRecipe,
  EndedFor,
  ExportedSnapshot,
  Extension,
  ExtensionContext,
  ExtensionHeader,
  Handle,
  ImageSpec,
  ImportedImage,
  Owned,
  ProvisionSpec,
  Ready,
  ResolvedSecret,
  SnapshotSpec,
  TakenSnapshot,
  TeardownTarget,
  Unowned,
  UsedSoFar,
  VolumeSpec,
} from '../../core/ports/extension.ts';
import type { SandboxSession } from '../../core/ports/session.ts';
import { refuseMisfit } from '../../core/routing/refuse-misfit.ts';
import { abortableFor } from '../shared/abortable-for.ts';
import { KeptChannels } from '../shared/channel/kept-channels.ts';
import { ImageStore } from './assets/image-store.ts';
import { VolumeStore } from './assets/volume-store.ts';
import { Engine } from './engine/engine.ts';
import { cancelled, failed, stopped } from './engine/failure.ts';
import { SpawnerError } from './engine/spawner-client.ts';
import { handles } from './handle.ts';
import type { HostFacts } from './host/host-facts.ts';
import type { LocalOptions } from './host/options.ts';
import { healthOf } from './inspect/health.ts';
import { inspectedOf, isolationFacts } from './inspect/inspect-isolation.ts';
import { usedSoFar } from './inspect/used-so-far.ts';
import { Sandboxes } from './sandboxes/sandboxes.ts';
import { LocalSession } from './session/local-session.ts';
import { Captures } from './snapshots/captures.ts';
import { Snapshots } from './snapshots/snapshots.ts';
import { Layers } from './state/layers.ts';
import { Layout } from './state/layout.ts';
import type { SandboxRecord } from './state/record.ts';
import type { RootFs } from './state/root-fs.ts';

const abortable = abortableFor('ext.local');

export class LocalExtension implements Extension {
  readonly header: ExtensionHeader;
  readonly #facts: HostFacts;
  readonly #layout: Layout;
  readonly #engine: Engine;
  readonly #layers: Layers;
  readonly #sandboxes: Sandboxes;
  readonly #captures: Captures;
  readonly #snapshots: Snapshots;
  readonly #images: ImageStore;
  readonly #volumes: VolumeStore;
  readonly #channels = new KeptChannels();

  constructor(header: ExtensionHeader, options: LocalOptions, facts: HostFacts) {
    this.header = header;
    this.#facts = facts;
    this.#layout = new Layout(options.directory);
    this.#layers = new Layers(this.#layout);
    this.#engine = new Engine(options, facts, this.#layout, {
      event: (word, fields) => {
        if (fields.id === undefined) return;
        if (word === 'started') this.#sandboxes.started(fields.id);
        if (word === 'gone') this.#sandboxes.released(fields.id);
      },
      up: () =>
        void this.#sandboxes
          .sweep()
          .then(() => {
            this.#images.sweepIncoming();
            this.#collect();
          })
          .catch(() => {}),
    });
    this.#volumes = new VolumeStore(this.#layout, this.#engine, facts);
    this.#images = new ImageStore(this.#layout, this.#engine, this.#layers);
    this.#sandboxes = new Sandboxes({
      options,
      facts,
      layout: this.#layout,
      engine: this.#engine,
      layers: this.#layers,
    });
    const parts = { layout: this.#layout, engine: this.#engine, layers: this.#layers };
    this.#captures = new Captures({ ...parts, sandboxes: this.#sandboxes, channels: this.#channels });
    this.#snapshots = new Snapshots(parts, this.#captures);
  }

  async probe(ctx: ExtensionContext): Promise<ExtensionHealth> {
    return await healthOf(
      this.#facts,
      this.#engine,
      this.#engine.up || this.#sandboxes.records.directories().length > 0,
      ctx,
    );
  }

  async provision(spec: ProvisionSpec, ctx: ExtensionContext): Promise<Handle> {
    return await this.#make(spec, ctx, async () => this.#images.of(spec), true);
  }

  async restore(spec: ProvisionSpec, ref: Json, ctx: ExtensionContext): Promise<Handle> {
    return await this.#make(spec, ctx, () => this.#snapshots.verified(ref));
  }

  async exportSnapshot(ref: Json): Promise<ExportedSnapshot> {
    return await this.#snapshots.export(ref);
  }

  async importSnapshot(spec: SnapshotSpec, body: AsyncIterable<Uint8Array>): Promise<TakenSnapshot> {
    try {
      return await this.#snapshots.import(spec, body);
    } catch (error) {
      this.#collect();
      throw error;
    }
  }

  async measureSnapshot(ref: Json): Promise<number> {
    return await this.#snapshots.measure(ref);
  }

  async fork(source: Handle, spec: ProvisionSpec, ctx: ExtensionContext): Promise<Handle> {
    const { attempt_id } = handles.read(source);
    const { promise: up, resolve } = Promise.withResolvers<void>();
    // An ephemeral sandbox's fork need not survive a crash of the machine.
    const lasting = spec.recipe.persistence !== 'ephemeral';
    try {
      return await this.#make(spec, ctx, async () => {
        return (await this.#captures.capture(attempt_id, { lasting, before: up })).rootFs;
      });
    } catch (error) {
      this.#collect();
      throw error;
    } finally {
      void this.#sandboxes
        .ready(spec.stamp.attemptId)
        .catch(() => {})
        .then(() => resolve());
    }
  }

  async waitReady(handle: Handle, ctx: ExtensionContext): Promise<Ready> {
    const fresh = this.#sandboxes.isStarting(handles.read(handle).attempt_id);
    const record = await abortable(this.#running(handle), ctx.signal);
    const opening = this.#sandboxes.channel(record, fresh ? undefined : ctx.signal);
    // The agent of a fresh sandbox has reported that it listens: the next steps need not wait for its greeting.
    if (fresh) this.#channels.keepOpening(record.attemptId, opening);
    else this.#channels.keep(record.attemptId, await opening);
    return {
      reachability: { exec_url: null, ssh: null, tunnel_ref: null, endpoints: [], services: [] },
      isolation: record.isolation,
      notes: record.notes,
    };
  }

  async connect(handle: Handle, ctx: ExtensionContext): Promise<SandboxSession> {
    const { attemptId } = await abortable(this.#running(handle), ctx.signal);
    // A later connection may have to start the sandbox again first.
    const open = async (signal?: AbortSignal) =>
      await this.#sandboxes.channel(await this.#running(handle), signal);
    const kept = await abortable(this.#channels.takeSoon(attemptId), ctx.signal);
    const first = kept ?? (await open(ctx.signal));
    return new LocalSession(first, open, this.#captures.gateOf(attemptId));
  }

  async teardown({ stamp }: TeardownTarget, ctx: ExtensionContext): Promise<CleanupReport> {
    if (ctx.signal.aborted) throw cancelled();
    const report = this.#sandboxes.inTurn(stamp.attemptId, async () => {
      const record = this.#sandboxes.records.of(stamp.attemptId);
      if (record !== null && record.owner !== stamp.owner) return { gone: true, removed: [], remaining: [] };
      this.#channels.drop(stamp.attemptId);
      this.#captures.forget(stamp.attemptId);
      const ended = await this.#sandboxes.end(stamp.attemptId).catch((error: unknown) => {
        throw failed(error);
      });
      if (record !== null && record.layers.length > 1) this.#collect();
      const what = `sandbox ${stamp.attemptId}`;
      if (existsSync(this.#layout.sandbox(stamp.attemptId)))
        return { gone: false, removed: [], remaining: [{ what, reason: 'Its directory is still there.' }] };
      return {
        gone: true,
        removed: ended ? [what] : [],
        remaining: [],
        ...(ended && { used: usedSoFar(ended) }),
      };
    });
    return await abortable(report, ctx.signal);
  }

  async *listOwned(owner: string): AsyncIterable<Owned> {
    for (const record of this.#sandboxes.records.all()) {
      if (record.owner !== owner) continue;
      const { sandboxUid, attemptId, createdAt } = record;
      yield {
        stamp: { sandboxUid, attemptId, owner },
        handle: handles.write({ attempt_id: attemptId, owner }),
        createdAt,
        condition: await this.#sandboxes.condition(record),
        parts: [`directory ${this.#layout.sandbox(attemptId)}`],
      };
    }
  }

  /** Freezes the sandbox where this machine can; otherwise stops it and keeps its disk. */
  async pause(handle: Handle): Promise<PauseKind> {
    const { attempt_id } = handles.read(handle);
    if (this.header.capabilities.pause === 'stopped') {
      await this.#sandboxes.inTurn(attempt_id, async () => {
        this.#channels.drop(attempt_id);
        await this.#sandboxes.stop(await this.#sandboxes.ready(attempt_id));
      });
      return 'stopped';
    }
    const { sealed } = await this.#sandboxes.ready(attempt_id);
    if (sealed) await this.#captures.finish(attempt_id);
    await this.#call('freeze', attempt_id);
    return 'frozen';
  }

  /** Unfreezes it, or starts it again from its disk. */
  async resume(
    handle: Handle,
    _ctx?: ExtensionContext,
    secrets: readonly ResolvedSecret[] = [],
  ): Promise<void> {
    const { attempt_id } = handles.read(handle);
    await this.#sandboxes.inTurn(attempt_id, async () => {
      const record = await this.#sandboxes.ready(attempt_id);
      if (!(await this.#thawed(record))) await this.#sandboxes.revive(record, secrets);
    });
  }

  /** Thaws the sandbox; returns whether it runs now. */
  async #thawed(record: SandboxRecord): Promise<boolean> {
    if (this.header.capabilities.pause !== 'frozen')
      return (await this.#sandboxes.condition(record)) === 'running';
    try {
      await this.#engine.call('thaw', { id: this.#layout.name(record.attemptId) });
      return true;
    } catch (error) {
      if (error instanceof SpawnerError && error.code === 'gone') return false;
      throw failed(error);
    }
  }

  async *listUnowned(owner: string): AsyncIterable<Unowned> {
    for (const { owner: markedBy, attemptId, createdAt } of this.#sandboxes.records.all()) {
      if (markedBy === owner) continue;
      const parts = [`directory ${this.#layout.sandbox(attemptId)}`];
      yield { owner: markedBy, what: attemptId, parts, createdAt };
    }
  }

  async snapshot(handle: Handle, spec: SnapshotSpec): Promise<TakenSnapshot> {
    try {
      return await this.#snapshots.take(handles.read(handle).attempt_id, spec);
    } catch (error) {
      this.#collect();
      throw error;
    }
  }

  async deleteSnapshot(_ref: Json | null, spec: SnapshotSpec): Promise<void> {
    if (this.#snapshots.remove(spec)) this.#collect();
  }

  async extendLife(handle: Handle, endsAt: number): Promise<void> {
    const { attempt_id } = handles.read(handle);
    await this.#sandboxes.inTurn(attempt_id, async () => {
      const record = await this.#sandboxes.ready(attempt_id);
      await this.#sandboxes.records.update({ ...record, endsAt: Math.floor(endsAt) });
      await this.#call('extend', attempt_id, { ends_at: Math.floor(endsAt) });
    });
  }

  async importImage(
    spec: ImageSpec,
    body: AsyncIterable<Uint8Array>,
    ctx: ExtensionContext,
  ): Promise<ImportedImage> {
    return await this.#images.import(spec, body, ctx.signal);
  }

  async buildImage(spec: ImageSpec, recipe: DebianRecipe, ctx: ExtensionContext): Promise<ImportedImage> {
    return await this.#images.build(spec, recipe, ctx.signal);
  }

  async deleteImage(imageId: string, owner: string): Promise<void> {
    this.#sandboxes.forgetAhead(this.#images.rootFs(imageId, owner)?.layers ?? []);
    this.#images.remove(imageId, owner);
    this.#collect();
  }

  async createVolume(spec: VolumeSpec): Promise<void> {
    await this.#volumes.create(spec);
  }

  async deleteVolume(volumeId: string, owner: string): Promise<void> {
    this.#sandboxes.records.requireUnmounted(volumeId);
    await this.#volumes.remove(volumeId, owner);
  }

  async inspectIsolation(handle: Handle, ctx: ExtensionContext): Promise<IsolationFacts> {
    const record = await abortable(this.#running(handle), ctx.signal);
    const fields = await this.#call('inspect', record.attemptId);
    return isolationFacts(inspectedOf(record, this.#facts, fields));
  }

  async whyEnded(handle: Handle): Promise<EndedFor | null> {
    return await this.#sandboxes.whyEnded(handles.read(handle).attempt_id);
  }

  async measure(handle: Handle): Promise<UsedSoFar> {
    return usedSoFar(await this.#call('status', handles.read(handle).attempt_id));
  }

  async close(): Promise<void> {
    this.#channels.close();
    if (this.#engine.up) await this.#sandboxes.close();
    this.#engine.close();
  }

  async #make(
    spec: ProvisionSpec,
    ctx: ExtensionContext,
    sourceOf: () => Promise<RootFs | null>,
    ahead = false,
  ): Promise<Handle> {
    refuseMisfit(this.header, spec);
    const { disk_mb: diskMb } = spec.recipe.resources;
    if (diskMb !== null) this.#engine.blanks.refuseTooLarge(diskMb, 'resources.disk_mb');
    for (const { volumeId, name } of spec.recipe.volumes ?? [])
      this.#volumes.require(volumeId, name, spec.stamp.owner);
    if (ctx.signal.aborted) throw cancelled();
    const { attemptId, owner } = spec.stamp;
    const made = this.#sandboxes.inTurn(attemptId, async () => {
      const existing = this.#sandboxes.records.of(attemptId);
      const source = existing === null ? await sourceOf() : null;
      try {
        if (ctx.signal.aborted) throw cancelled();
        await this.#sandboxes.make(spec, existing, source, { signal: ctx.signal, ahead });
      } catch (error) {
        throw failed(error, 'maybe_created');
      } finally {
        if (source !== null) this.#layers.settled(source.layers[0] ?? '');
      }
    });
    await abortable(made, ctx.signal);
    return handles.write({ attempt_id: attemptId, owner });
  }

  /** Returns its record, once it runs. */
  async #running(handle: Handle): Promise<SandboxRecord> {
    const { attempt_id } = handles.read(handle);
    const record = await this.#sandboxes.ready(attempt_id);
    if (record.sealed) await this.#captures.finish(attempt_id);
    const waits = record.stopped || (record.keep && record.secretFiles);
    if (record.keep || waits) {
      const condition = await this.#sandboxes.condition(record);
      if (condition === 'stopped' && waits) throw stopped();
      if (condition === 'stopped')
        await this.#sandboxes.inTurn(attempt_id, () => this.#sandboxes.revive(record, []));
    }
    return record;
  }

  async #call(verb: string, attemptId: string, fields: Record<string, string | number> = {}) {
    return await this.#engine
      .call(verb, { id: this.#layout.name(attemptId), ...fields })
      .catch((error: unknown) => {
        throw failed(error);
      });
  }

  /** Removes unused layers in the background; a failure is repeated at the next occasion. */
  #collect(): void {
    void (async () => {
      const { hostImage } = await this.#engine.machinery();
      for (const path of this.#layers.unused(hostImage.layers[0] ?? ''))
        await this.#engine.call('discard', { path });
    })().catch(() => {});
  }
}
