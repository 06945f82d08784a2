import { join } from 'node:path';
import { SandboxerError } from '../contract/errors/errors.ts';
import { Sessions } from '../control/backends/sessions.ts';
import type { Control } from '../control/control.ts';
import type { EventSink } from '../control/events/deliver-events.ts';
import { alignSinks } from '../control/events/list-sinks.ts';
import { alignHosts } from '../control/hosts/manage-hosts.ts';
import { Activity } from '../control/lifecycle/activity.ts';
import { learnFromAttempts } from '../control/lifecycle/attempt-health.ts';
import { Driver } from '../control/lifecycle/driver.ts';
import { learnFromMeters } from '../control/money/learn-use.ts';
import type { ControlPorts } from '../control/ports/control-ports.ts';
import type { ControlSettings } from '../control/ports/settings.ts';
import { DEFAULT_SETTINGS } from '../control/ports/settings.ts';
import { ledger } from '../core/credits/ledger/ledger.ts';
import { HealthBook } from '../core/health/health-book.ts';
import type { Extension, ExtensionServices } from '../core/ports/extension.ts';
import type { Log } from '../core/ports/log.ts';
import type { Store } from '../core/ports/store/store.ts';
import { UseBook } from '../core/routing/learned-use.ts';
import { builtinExtensions } from '../extensions/builtins.ts';
import { packagedExtensions } from '../extensions/load-packages.ts';
import { PACKAGE_DIR } from '../extensions/shared/own-programs.ts';
import { EnvSecretProvider } from '../secrets/env-provider.ts';
import { FileSecretProvider } from '../secrets/file-provider.ts';
import type { SecretProviders } from '../secrets/resolve-secrets.ts';
import { resolveSecrets } from '../secrets/resolve-secrets.ts';
import { SqliteStore } from '../store/sqlite/sqlite-store.ts';
import { canaryWorker } from '../workers/canary-worker.ts';
import { hostWorker } from '../workers/host-worker.ts';
import { Loop } from '../workers/loop.ts';
import { startWorkers } from '../workers/start-workers.ts';
import type { ResolvedConfig } from './config/config.ts';
import type { AccessSources } from './hosts/hosts.ts';
import { ReachedHosts } from './hosts/hosts.ts';
import { tunnelConfig } from './hosts/ops-bridge.ts';
import { Warden } from './hosts/ops-warden.ts';
import { ProbedExtensions } from './ports/extension-registry.ts';
import { describeSink, hubs } from './ports/hubs.ts';
import { learnPriors } from './ports/latency-priors.ts';
import { publishedRegistry } from './ports/published-registry.ts';
import { randomIdentifiers } from './ports/random-identifiers.ts';
import { openSecretBox } from './ports/secret-box.ts';
import { stagedInputs } from './ports/staged-inputs.ts';
import { systemClock } from './ports/system-clock.ts';
import { Webhooks } from './ports/webhooks.ts';
import { WorkspaceCatalogues } from './ports/workspace-catalogues.ts';
import { DEFAULT_WORKSPACE, prepareInstallation } from './process/installation.ts';
import { shippedProfiles } from './process/shipped-files.ts';

export interface ControlPlane extends Control {
  /** Stops, and leaves everything for the next start to continue. */
  stop(): Promise<void>;
}

export interface WireOptions {
  readonly config: ResolvedConfig;
  readonly log: Log;
  readonly env: NodeJS.ProcessEnv;
  readonly sinks?: readonly EventSink[];
  /** Extensions beside the built-in ones: third-party backends, and those of tests. */
  readonly extensions?: readonly Extension[];
  readonly store?: Store;
}

const PROBE_MS = 30_000;

function settingsFrom(config: ResolvedConfig): ControlSettings {
  const { timing, retention, limits } = config;
  const d = DEFAULT_SETTINGS;
  return {
    ...d,
    leaseMs: timing.lease ?? d.leaseMs,
    waitMs: timing.wait ?? d.waitMs,
    retryFirstMs: timing.first_retry ?? d.retryFirstMs,
    retryMostMs: timing.longest_retry ?? d.retryMostMs,
    reconcileMs: timing.reconcile ?? d.reconcileMs,
    meterTickMs: timing.meter_tick ?? d.meterTickMs,
    deadManGraceMs: timing.dead_man_grace ?? d.deadManGraceMs,
    fundMs: timing.fund_ahead ?? d.fundMs,
    hedgeShare: config.routing.hedge_share,
    maxLiving: limits.living_sandboxes,
    maxImages: limits.images,
    maxImageBytes: limits.image_mb * 2 ** 20,
    maxVolumes: limits.volumes,
    keepDestroyedMs: retention.sandboxes ?? d.keepDestroyedMs,
    keepEventsMs: retention.events ?? d.keepEventsMs,
    keepIdempotencyMs: retention.idempotency_keys ?? d.keepIdempotencyMs,
    maxSnapshots: limits.snapshots,
    maxSnapshotBytes: limits.snapshot_mb === null ? null : limits.snapshot_mb * 1_048_576,
    keepSnapshots: retention.snapshot_count,
    keepHostFiguresMs: config.hosts.keep_figures,
    keepSnapshotsMs: retention.snapshots ?? null,
    ...(retention.audit === undefined ? {} : { keepAuditMs: retention.audit }),
  };
}

/** Returns the secrets of a workspace; those of the default workspace carry no workspace name. */
function secretProviders(config: ResolvedConfig, env: NodeJS.ProcessEnv, workspaceId: string) {
  const { directory } = config.secrets;
  const isDefault = workspaceId === DEFAULT_WORKSPACE;
  const ofWorkspace = directory === null || isDefault ? directory : join(directory, workspaceId);
  return {
    env: new EnvSecretProvider(env, isDefault ? null : workspaceId),
    ...(ofWorkspace === null ? {} : { file: new FileSecretProvider(ofWorkspace) }),
  };
}

/** Returns the secrets that the server itself needs: those of the default workspace. */
function serverSecrets(config: ResolvedConfig, env: NodeJS.ProcessEnv) {
  const providers: SecretProviders = secretProviders(config, env, DEFAULT_WORKSPACE);
  return async ({ provider, key }: { provider: string; key: string }, signal: AbortSignal) => {
    const found = Object.hasOwn(providers, provider) ? providers[provider] : undefined;
    if (found) return await found.resolve(key, signal);
    throw new SandboxerError('SBX_SECRET_UNRESOLVED', `There is no provider "${provider}" here.`, {
      remedy: 'Set secrets.directory, or use the provider "env".',
    });
  };
}

function accessSources(config: ResolvedConfig): AccessSources {
  const { ops_bridge, ops_warden } = config.hosts;
  const warden =
    ops_warden &&
    new Warden({
      command: ops_warden.command,
      renewBeforeMs: ops_warden.renew_before,
      directory: join(config.stateDir, 'ssh'),
      now: () => systemClock.now(),
    });
  return {
    tunnelConfig: (name) => tunnelConfig(ops_bridge?.directory ?? null, name),
    async certificate(hostId) {
      if (warden) return warden.certificate(hostId);
      throw new SandboxerError('SBX_BACKEND_AUTH', `The host ${hostId} needs ops-warden.`, {
        creation: 'not_created',
        remedy: 'Name its command in the configuration: hosts.ops_warden.command',
      });
    },
  };
}

/** A refused package is found before any extension is made. */
async function extensionsFor(
  { config, extensions = [] }: WireOptions,
  services: ExtensionServices,
): Promise<readonly Extension[]> {
  const folders = [config.configDir, PACKAGE_DIR];
  const packaged = await packagedExtensions(config.extensions.packages, { folders, services });
  return [...(await builtinExtensions(config.extensions, services)), ...packaged, ...extensions];
}

/** Connects all parts; the only place that knows every one. */
export async function wire(options: WireOptions): Promise<ControlPlane> {
  const { config, log, env } = options;
  const ids = randomIdentifiers(() => systemClock.now());
  const store = options.store ?? (await SqliteStore.open({ path: join(config.stateDir, 'sandboxer.db') }));
  const secretBox = await openSecretBox(config, env, store).catch(async (error: unknown) => {
    await store.close();
    throw error;
  });
  const { owner } = await prepareInstallation(store, ids, systemClock);
  const folders = config.profiles.folders.map((path, index) => ({
    path,
    priority: 100 + index,
    label: path,
  }));
  const catalogues = await WorkspaceCatalogues.open(store, [shippedProfiles(), ...folders]);
  const services: ExtensionServices = {
    stateDir: config.stateDir,
    env,
    secret: serverSecrets(config, env),
  };
  const extensions = await extensionsFor(options, services).catch(async (error: unknown) => {
    await store.close();
    throw error;
  });
  const registry = new ProbedExtensions(extensions, systemClock, log);
  const webhooks = new Webhooks(config.webhooks, secretBox, owner);
  const hosts = new ReachedHosts(accessSources(config), config.stateDir);
  const configured = hubs(config, owner);
  const sinks = [...configured.flatMap(({ sink }) => sink ?? []), ...(options.sinks ?? [])];
  let wakeSinks = () => {};
  const ports: ControlPorts = {
    store,
    clock: systemClock,
    ids,
    log,
    ledger,
    extensions: registry,
    health: new HealthBook(),
    uses: new UseBook(),
    settings: settingsFrom(config),
    owner,
    instance: ids.next('proc'),
    catalogue: (workspaceId) => catalogues.of(workspaceId),
    profilesChanged: () => catalogues.refresh(),
    resolveSecrets: (workspaceId, refs, capabilities, signal) =>
      resolveSecrets(refs, secretProviders(config, env, workspaceId), capabilities, signal),
    inputs: stagedInputs(config),
    hosts,
    secretBox,
    webhooks,
    sinks: [...configured.map(({ description }) => description), ...(options.sinks ?? []).map(describeSink)],
    publishedRegistry: publishedRegistry(config.reuse_surface),
    wakeSinks: () => wakeSinks(),
  };
  const activity = new Activity(ports);
  const sessions = new Sessions(ports);
  const driver = new Driver(ports, {
    // A sandbox without work has no documents read.
    usable: ({ sandbox: { uid }, documents }) =>
      documents && sessions.learn(uid, documents.generation, documents.recipe.variables),
    over: (uid) => {
      sessions.drop(uid);
      activity.forget(uid);
    },
  });
  const control: Control = { ...ports, driver, sessions, activity };
  await learnPriors(ports.health, extensions);
  await learnFromAttempts(ports);
  await learnFromMeters(ports);
  const starting = new AbortController();
  await registry.probeAll(starting.signal);
  const health = new Loop('health', { clock: systemClock, log }, async (signal) => {
    await registry.probeAll(signal);
    return systemClock.now() + PROBE_MS;
  });
  await alignSinks(
    ports,
    sinks.map(({ id }) => id),
  );
  await alignHosts(ports, config.hosts.registered, config.hosts.local);
  const hostProbes = hostWorker(ports, config.hosts.probe);
  const canaries = canaryWorker(ports, config.hosts.canary.every);
  const workers = await startWorkers(control, sinks);
  wakeSinks = workers.wakeSinks;
  await webhooks.start(ports);
  health.start();
  hostProbes.start();
  canaries.start();
  return {
    ...control,
    async stop() {
      await driver.stop();
      await Promise.all([health.stop(), hostProbes.stop(), canaries.stop(), workers.stop(), webhooks.stop()]);
      for (const sink of sinks) sink.close?.();
      await sessions.close();
      await Promise.all(extensions.map((extension) => extension.close?.()));
      await hosts.close();
      await store.close();
    },
  };
}
