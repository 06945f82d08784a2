/** Sandboxes of one state directory: their records, their start and their end. */

import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { KeyedMutex } from '../../../async/keyed-mutex.ts';
import { SandboxerError } from '../../../contract/errors/errors.ts';
import type { EndedFor, ProvisionSpec, ResolvedSecret } from '../../../core/ports/extension.ts';
import type { AgentSession } from '../../shared/agent-session/agent-session.ts';
import type { Channel } from '../../shared/channel/channel.ts';
import { deliverSecrets } from '../../shared/channel/secret-files.ts';
import type { OwnParts } from '../bundle/bundle-parts.ts';
import { OPEN_PLACE } from '../bundle/bundle-parts.ts';
import { BundleTexts } from '../bundle/bundle-texts.ts';
import type { Engine, Machinery } from '../engine/engine.ts';
import { cancelled, diskFull, failed, lost } from '../engine/failure.ts';
import type { Fields } from '../engine/spawner-client.ts';
import type { HostFacts } from '../host/host-facts.ts';
import { limitFields, limitsOf, NO_RESOURCES } from '../host/limits.ts';
import type { LocalOptions } from '../host/options.ts';
import { DEFAULTS } from '../host/options.ts';
import { OomCounts } from '../inspect/oom-counts.ts';
import type { MountPolicy } from '../mounts/blocked-sources.ts';
import { checkedMounts } from '../mounts/mount-policy.ts';
import { checkedTargets } from '../mounts/mount-targets.ts';
import { readOnlyWorkspace } from '../mounts/read-only-workspace.ts';
import { mountTargets, prepareMounts, volumeTargets } from '../mounts/start-mounts.ts';
import { channelOf, openAgent } from '../session/channel.ts';
import { Doors, levelGone } from '../session/doors.ts';
import { EarlyAgents } from '../session/early-agents.ts';
import type { Layers } from '../state/layers.ts';
import type { Layout } from '../state/layout.ts';
import type { SandboxRecord } from '../state/record.ts';
import { writeFirstRecord } from '../state/record.ts';
import type { RootFs } from '../state/root-fs.ts';
import { rootFsFields } from '../state/root-fs.ts';
import { canBeWarm } from '../warm/can-be-warm.ts';
import { StartedAhead } from '../warm/started-ahead.ts';
import { HeldRanges } from './held-ranges.ts';
import { newRecord } from './new-record.ts';
import { Records } from './records.ts';

/** Uid of the account that programs run as. */
const DEFAULT_USER = 1000;

export interface Parts {
  readonly options: LocalOptions;
  readonly facts: HostFacts;
  readonly layout: Layout;
  readonly engine: Engine;
  readonly layers: Layers;
}

export class Sandboxes {
  readonly records: Records;
  readonly #parts: Parts;
  readonly #mutex = new KeyedMutex();
  /** Starts under way, until the agent has answered and the secrets are inside. */
  readonly #starting = new Map<string, Promise<void>>();
  readonly #ranges: HeldRanges;
  readonly #ahead: StartedAhead;
  readonly #doors: Doors;
  readonly #early = new EarlyAgents();
  readonly #bundles: BundleTexts;
  readonly #oomCounts: OomCounts;

  constructor(parts: Parts) {
    this.#parts = parts;
    this.records = new Records(parts.layout, parts.engine);
    this.#ranges = new HeldRanges(parts.facts, parts.layout, this.records);
    this.#doors = new Doors(parts.layout);
    this.#bundles = new BundleTexts(parts.facts);
    this.#oomCounts = new OomCounts(async (id) =>
      Number((await parts.engine.call('status', { id })).oom_kills ?? 0),
    );
    this.#ahead = new StartedAhead(parts.options.warm ?? DEFAULTS.warm, {
      engine: parts.engine,
      layout: parts.layout,
      early: this.#early,
      takeRange: (name, machinery) => this.#ranges.take(name, machinery),
      writeBundle: (name, own) => this.#writeBundle(name, own),
      released: (name) => this.released(name),
    });
  }

  async inTurn<T>(attemptId: string, work: () => Promise<T>): Promise<T> {
    return await this.#mutex.run(attemptId, work);
  }

  /**
   * Makes the directory with its stamp, then lets the start go on in the background: `ready` waits for it. `existing`: its
   * record, read in the same turn. `ahead`: a sandbox started ahead will do, if there is one.
   */
  async make(
    spec: ProvisionSpec,
    existing: SandboxRecord | null,
    source: RootFs | null,
    { signal, ahead }: { signal: AbortSignal; ahead: boolean },
  ): Promise<void> {
    const { attemptId } = spec.stamp;
    const { layout } = this.#parts;
    if (existing !== null) {
      if (existing.owner !== spec.stamp.owner) {
        throw new SandboxerError('SBX_CONFLICT', 'The attempt belongs to another installation.', {
          backend: 'ext.local',
          creation: 'not_created',
        });
      }
      if (!this.#starting.has(attemptId)) await this.#restart(existing, spec.secrets);
      return;
    }
    const machinery = await this.#parts.engine.machinery();
    if (signal.aborted) throw cancelled();
    const rootFs = source ?? machinery.hostImage;
    if (ahead && canBeWarm(spec, this.#parts.facts.levels) && (await this.#claim(spec, rootFs, machinery)))
      return;
    const mounts = checkedMounts(spec.recipe.mounts ?? [], this.#mountPolicy());
    checkedTargets([...mountTargets(mounts), ...volumeTargets(spec.recipe.volumes ?? [])]);
    const range = this.#ranges.take(layout.name(attemptId), machinery);
    const bare = this.#newRecord(spec, rootFs, range, machinery);
    // Root inside enters it by its name; no other user gets past the base.
    mkdirSync(layout.sandbox(attemptId), { recursive: true, mode: 0o711 });
    const workspace = await this.#readOnlyWorkspace(spec, bare.range, signal);
    const record = { ...bare, mounts: workspace === null ? mounts : [workspace, ...mounts] };
    await writeFirstRecord(layout.sandbox(attemptId, 'record.json'), record);
    this.records.keep(record);
    this.#start(record, machinery, spec.secrets);
  }

  async #readOnlyWorkspace(spec: ProvisionSpec, range: number, signal: AbortSignal) {
    const { layout, facts } = this.#parts;
    const { attemptId } = spec.stamp;
    try {
      const owner = facts.root ? range + DEFAULT_USER : undefined;
      return await readOnlyWorkspace(spec, layout.sandbox(attemptId, 'workspace'), owner, signal);
    } catch (error) {
      // Without a record no later process would find the directory.
      rmSync(layout.sandbox(attemptId), { recursive: true, force: true });
      this.released(layout.name(attemptId));
      throw error;
    }
  }

  /** Returns whether the sandbox has not answered yet since this process began to start it. */
  isStarting(attemptId: string): boolean {
    return this.#starting.has(attemptId);
  }

  /** Resolves when the sandbox can be used; starts it anew when it has stopped and its disk was kept. */
  async ready(attemptId: string): Promise<SandboxRecord> {
    await this.#starting.get(attemptId);
    const record = this.records.of(attemptId);
    if (record === null) throw lost('There is no such sandbox on this machine.');
    return record;
  }

  /** Returns the state that the spawner reports. */
  async state(attemptId: string): Promise<string> {
    const { engine, layout } = this.#parts;
    return (await engine.call('status', { id: layout.name(attemptId) })).state ?? 'none';
  }

  /** Returns whether any program of it runs; where none does, whether it can be started again. */
  async condition(record: SandboxRecord): Promise<'running' | 'stopped' | 'ended'> {
    if (this.#starting.has(record.attemptId)) return 'running';
    const state = await this.state(record.attemptId);
    if ((state !== 'dead' && state !== 'none') || record.sealed) return 'running';
    return record.keep || record.stopped ? 'stopped' : 'ended';
  }

  /** Returns why it was ended, if it was for its disk use. */
  async whyEnded(attemptId: string): Promise<EndedFor | null> {
    const { engine, layout } = this.#parts;
    const record = this.records.of(attemptId);
    if (record === null) return null;
    const { full } = await engine.call('status', { id: layout.name(attemptId) });
    return diskFull(record, Number(full ?? 0));
  }

  /** Ends its programs and keeps its disk. */
  async stop(record: SandboxRecord): Promise<void> {
    await this.records.update({ ...record, stopped: true });
    await this.#parts.engine.call('destroy', { id: this.#parts.layout.name(record.attemptId), discard: 0 });
  }

  /** Starts a sandbox again that stopped with its disk; any other that does not run is lost. */
  async revive(record: SandboxRecord, secrets: readonly ResolvedSecret[]): Promise<void> {
    if (!record.keep && !record.stopped && !record.sealed) throw lost('It has ended.');
    await this.#restart(record, secrets);
    await this.#starting.get(record.attemptId);
    const now = this.records.of(record.attemptId);
    if (now?.stopped || now?.sealed) await this.records.update({ ...now, stopped: false, sealed: false });
  }

  /** Starts the sandbox again on top of the layer that its disk became. */
  async startAgain(record: SandboxRecord): Promise<void> {
    await this.#restart(record, []);
    await this.#starting.get(record.attemptId);
    await this.records.update({ ...record, sealed: false });
  }

  /** Ends the sandbox and removes its directory. A missing one is success. */
  async end(attemptId: string): Promise<Fields | null> {
    const { engine, layout } = this.#parts;
    const there = existsSync(layout.sandbox(attemptId));
    this.#doors.shut(attemptId);
    const starting = this.#starting.get(attemptId);
    if (!there && starting === undefined) {
      // It may have ended without an event.
      this.released(layout.name(attemptId));
      return null;
    }
    const ended = await engine.call('destroy', { id: layout.name(attemptId) });
    await starting?.catch(() => {});
    this.released(layout.name(attemptId));
    return there ? ended : null;
  }

  /** Called when its socket is in its directory, and its agent is starting. */
  started(name: string): void {
    if (this.#ranges.has(name)) this.#early.open(name, join(this.#parts.layout.sandboxes, name, 'a.sock'));
  }

  /** Frees the ids of a sandbox whose directory is gone. */
  released(name: string): void {
    this.#ahead.lose(name);
    this.#early.drop(name);
    this.records.forget(name);
    this.#oomCounts.forget(name);
    if (this.#ranges.has(name) && !existsSync(join(this.#parts.layout.sandboxes, name)))
      this.#ranges.give(name);
  }

  async channel(record: SandboxRecord, signal?: AbortSignal): Promise<Channel> {
    const oomKills = await this.#oomCounts.of(this.#parts.layout.name(record.attemptId));
    return await channelOf(await this.#agent(record, signal), record, oomKills);
  }

  /** Opens the plain channel to its agent. */
  async #agent(record: SandboxRecord, signal?: AbortSignal): Promise<AgentSession> {
    if (record.isolation !== 'container') return await this.#doors.agent(record, signal);
    const { layout } = this.#parts;
    const early = await this.#early.take(layout.name(record.attemptId));
    return early ?? (await openAgent(layout.sandbox(record.attemptId, 'a.sock'), signal));
  }

  #newRecord(spec: ProvisionSpec, rootFs: RootFs, range: number, machinery: Machinery): SandboxRecord {
    const { facts, options } = this.#parts;
    return newRecord(spec, { rootFs, range, facts, options, ownIds: machinery.idmap });
  }

  /** Claims a sandbox started ahead for this spec. Returns `false` when there is none. */
  async #claim(spec: ProvisionSpec, rootFs: RootFs, machinery: Machinery): Promise<boolean> {
    const { layout, facts, options } = this.#parts;
    const limits = limitsOf(spec.recipe.resources, facts, options);
    const program = spec.recipe.warmProgram ?? null;
    const one = this.#ahead.take({
      rootFs,
      workspaceId: rootFs === machinery.hostImage && program === null ? null : spec.workspaceId,
      program,
      openFiles: limits.openFiles,
      noNewPrivs: spec.recipe.noNewPrivs ?? false,
      limits,
    });
    if (one === null) return false;
    const record = this.#newRecord(spec, rootFs, one.range, machinery);
    const name = layout.name(record.attemptId);
    try {
      await writeFirstRecord(join(layout.sandboxes, one.name, 'record.json'), record);
      await machinery.client.call('claim', {
        id: one.name,
        to: name,
        ends_at: record.endsAt,
        keep: record.keep ? 1 : 0,
        ...limitFields(record.limits),
      });
      this.#ranges.rename(one.name, name);
      this.records.keep(record);
      this.#oomCounts.begin(name);
      if (one.agent !== null) this.#early.give(name, one.agent);
    } catch (error) {
      if (existsSync(layout.sandbox(record.attemptId))) {
        // The claim had succeeded, although its answer was lost.
        this.#ranges.rename(one.name, name);
        void one.agent?.close();
        throw error;
      }
      await this.#ahead.discard(one);
      return false;
    }
    if (spec.secrets.length > 0) await deliverSecrets(await this.#agent(record), spec.secrets);
    return true;
  }

  /** Ends sandboxes started ahead from only these layers. */
  forgetAhead(layers: readonly string[]): void {
    this.#ahead.forget(layers);
  }

  /**
   * Removes the remains of an earlier process: sandboxes started ahead, or not yet stamped when it ended. No request can reach
   * them any more.
   */
  async sweep(): Promise<void> {
    this.records.forgetAll();
    for (const name of this.records.directories()) {
      if (this.#ranges.has(name)) continue;
      const stamped = this.records.inDirectory(name) !== null;
      if (name.startsWith('warm-') || !stamped) await this.#parts.engine.call('destroy', { id: name });
    }
    const { facts, options } = this.#parts;
    await this.#ahead.expect(limitsOf(NO_RESOURCES, facts, options));
  }

  async close(): Promise<void> {
    this.#doors.close();
    this.#early.close();
    await this.#ahead.close();
  }

  async #restart(record: SandboxRecord, secrets: readonly ResolvedSecret[]): Promise<void> {
    const state = await this.state(record.attemptId);
    if (state === 'live') {
      // The process that started it may have ended before it delivered the secrets.
      if (secrets.length > 0) await deliverSecrets(await this.#agent(record), secrets);
      return;
    }
    if (state === 'ending') throw lost('It is being ended.');
    // It may get its first secret now: that needs the file system in memory, too.
    const now = record.secretFiles || secrets.length === 0 ? record : { ...record, secretFiles: true };
    if (now !== record) await this.records.update(now);
    this.#start(now, await this.#parts.engine.machinery(), secrets);
  }

  #start(record: SandboxRecord, machinery: Machinery, secrets: readonly ResolvedSecret[]): void {
    const { attemptId } = record;
    this.#oomCounts.begin(this.#parts.layout.name(attemptId));
    const starting = this.#run(record, machinery, secrets).finally(() => {
      if (this.#starting.get(attemptId) === starting) this.#starting.delete(attemptId);
    });
    // A request that waits for it gets the error; without one it must not be an unhandled rejection.
    starting.catch(() => {});
    this.#starting.set(attemptId, starting);
  }

  async #run(record: SandboxRecord, machinery: Machinery, secrets: readonly ResolvedSecret[]): Promise<void> {
    const { engine, layout } = this.#parts;
    const id = layout.name(record.attemptId);
    let mounts: { release(): void } | null = null;
    try {
      const { range, secretFiles, process, noNewPrivs, volumes, mounts: shown } = record;
      const { openFiles, diskMb } = record.limits;
      const own = { range, secretFiles, process, noNewPrivs, volumes, openFiles, mounts: shown };
      const higher = await this.#higher(record);
      mounts = prepareMounts(record, layout.sandbox(record.attemptId), this.#mountPolicy());
      this.#writeBundle(id, { ...own, calls: higher !== null });
      const create = (disk: { disk?: string }) =>
        machinery.client.call('create', {
          id,
          ...disk,
          ...rootFsFields(record),
          volumes: record.volumes
            .map(({ volumeId, readOnly }) => (readOnly ? `${volumeId},ro` : volumeId))
            .join(':'),
          range: record.range,
          ends_at: record.endsAt,
          keep: record.keep ? 1 : 0,
          ...(higher === null ? engine.filterToLearn() : {}),
          ...limitFields(record.limits),
          ...higher,
        });
      await engine.blanks.with(diskMb, create);
      if (secrets.length > 0) await deliverSecrets(await this.#agent(record), secrets);
    } catch (error) {
      throw failed(error, 'maybe_created');
    } finally {
      mounts?.release();
    }
  }

  /** Returns the additions of a level above `container`: its runtime, and a door for the agent to call. */
  async #higher(record: SandboxRecord) {
    if (record.isolation === 'container') return null;
    const runtime = this.#parts.facts.levels.offered.get(record.isolation);
    if (runtime === undefined) throw levelGone(record.isolation);
    await this.#doors.open(record);
    return { runtime: runtime.path, flags: runtime.flags.join(' ') };
  }

  #writeBundle(name: string, own: Omit<OwnParts, 'place'>): void {
    const { layout, engine } = this.#parts;
    const place = own.calls ? OPEN_PLACE : layout.base;
    const text = this.#bundles.of({ ...own, place }, own.calls ? null : engine.seccomp());
    writeFileSync(join(layout.sandboxes, name, 'config.json'), text);
  }

  #mountPolicy(): MountPolicy {
    return { own: [dirname(this.#parts.layout.base)] };
  }
}
