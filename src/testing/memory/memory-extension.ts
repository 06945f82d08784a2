import { createHash } from 'node:crypto';
import { SandboxerError } from '../../contract/errors/errors.ts';
import type { CapabilityVector } from '../../contract/extensions/capability.ts';
import type { Price } from '../../contract/money/money.ts';
import type { Json } from '../../contract/values/json.ts';
import { isoTime } from '../../core/ports/clock.ts';
import type {
  Extension,
  ExtensionContext,
  ExtensionHeader,
  Handle,
  ImageSpec,
  ImportedImage,
  ProvisionSpec,
  Stamp,
  VolumeSpec,
} from '../../core/ports/extension.ts';
import type { SandboxSession, SpawnSpec } from '../../core/ports/session.ts';
import { refuseMisfit } from '../../core/routing/refuse-misfit.ts';
import { FileTree } from './file-tree.ts';
import { MemoryFiles } from './memory-files.ts';
import { MemoryProcess } from './memory-process.ts';

export interface MemoryExtensionOptions {
  readonly id?: string;
  /** The price of a sandbox; free when left out. */
  readonly price?: Price;
  /** Whether the backend also takes profiles that are not meant for tests. */
  readonly demo?: false;
  /** Places sandboxes on registered hosts, to which it sends no request. */
  readonly runsOn?: 'hosts';
}

const HANDLE_VERSION = 1;

const CAPABILITIES: CapabilityVector = {
  isolation: ['none'],
  egress: 'none',
  // Programs in memory have no network: a closed one holds, and an open one is not missed.
  deny_all: true,
  open_network: true,
  credentials: [],
  dead_man: 'none',
  snapshot: 'filesystem',
  snapshot_destructive: false,
  fork: true,
  pause: 'frozen',
  persistence: ['ephemeral', 'persistent'],
  exec: true,
  pty: false,
  background: false,
  files: true,
  watch: false,
  ports: false,
  ssh: false,
  resources: [],
  images: ['none', 'imported'],
  volumes: true,
  regions: [],
  gpu: [],
  max_ttl_seconds: null,
  pricing: 'free',
  latency_class: 'instant',
  hosting: 'self-hosted',
  host_root: false,
  elevated: false,
  demo: true,
};

interface MemorySandbox {
  readonly stamp: Stamp;
  readonly createdAt: number;
  readonly tree: FileTree;
  readonly processes: Set<MemoryProcess>;
  paused: boolean;
}

/** Backend with sandboxes in this process: a file tree and a few programs written in JavaScript. No call waits. */
class MemoryExtension implements Extension {
  readonly header: ExtensionHeader;
  readonly #sandboxes = new Map<string, MemorySandbox>();
  readonly #snapshots = new Map<string, { owner: string; tree: FileTree }>();
  readonly #images = new Map<string, string>();
  readonly #volumes = new Map<string, string>();
  #spawned = 0;

  constructor(header: ExtensionHeader) {
    this.header = header;
  }

  async probe(ctx: ExtensionContext) {
    const checked_at = isoTime(ctx.clock.now());
    return { status: 'healthy' as const, detail: 'It is in this process.', checked_at, checks: [] };
  }

  /** Stores only the digest: the backend runs no image. */
  async importImage(
    { imageId, owner, maxBytes }: ImageSpec,
    body: AsyncIterable<Uint8Array>,
  ): Promise<ImportedImage> {
    const hash = createHash('sha256');
    let sizeBytes = 0;
    for await (const chunk of body) {
      hash.update(chunk);
      sizeBytes += chunk.length;
      if (sizeBytes > maxBytes) throw this.#error('SBX_PAYLOAD_TOO_LARGE', 'The image is too large.');
    }
    this.#images.set(imageId, owner);
    const config = { env: {}, user: null, workdir: null, entrypoint: [], cmd: [] };
    return { digest: `sha256:${hash.digest('hex')}`, sizeBytes, architecture: 'any', source: 'tar', config };
  }

  async deleteImage(imageId: string, owner: string): Promise<void> {
    if (this.#images.get(imageId) === owner) this.#images.delete(imageId);
  }

  async createVolume({ volumeId, owner }: VolumeSpec): Promise<void> {
    this.#volumes.set(volumeId, owner);
  }

  async deleteVolume(volumeId: string, owner: string): Promise<void> {
    if (this.#volumes.get(volumeId) === owner) this.#volumes.delete(volumeId);
  }

  async provision(spec: ProvisionSpec, ctx: ExtensionContext): Promise<Handle> {
    return this.#make(spec, () => new FileTree(), ctx);
  }

  async restore(spec: ProvisionSpec, ref: Json, ctx: ExtensionContext): Promise<Handle> {
    const snapshot = this.#snapshots.get(String(ref));
    if (snapshot?.owner !== spec.stamp.owner)
      throw this.#error('SBX_NOT_FOUND', 'There is no such snapshot.');
    return this.#make(spec, () => snapshot.tree.copy(), ctx);
  }

  async fork(source: Handle, spec: ProvisionSpec, ctx: ExtensionContext): Promise<Handle> {
    const { tree } = this.#sandbox(source);
    return this.#make(spec, () => tree.copy(), ctx);
  }

  async waitReady(handle: Handle) {
    this.#sandbox(handle);
    const reachability = { exec_url: null, ssh: null, tunnel_ref: null, endpoints: [], services: [] };
    return { reachability, isolation: 'none', notes: [] };
  }

  async connect(handle: Handle): Promise<SandboxSession> {
    const running = () => {
      const sandbox = this.#sandbox(handle);
      if (sandbox.paused) throw this.#error('SBX_INVALID_STATE', 'It is paused.');
      return sandbox;
    };
    running();
    return {
      spawn: async (spec) => this.#spawn(running(), spec),
      files: new MemoryFiles(() => running().tree),
      close: async () => {},
    };
  }

  async teardown({ stamp }: { readonly stamp: Stamp }) {
    const { attemptId, owner } = stamp;
    const sandbox = this.#sandboxes.get(attemptId);
    if (sandbox === undefined || sandbox.stamp.owner !== owner)
      return { gone: true, removed: [], remaining: [] };
    for (const process of sandbox.processes) await process.kill('SIGKILL');
    this.#sandboxes.delete(attemptId);
    return { gone: true, removed: [attemptId], remaining: [] };
  }

  async *listOwned(owner: string) {
    for (const { stamp, createdAt } of [...this.#sandboxes.values()]) {
      if (stamp.owner === owner) yield { stamp, handle: this.#handle(stamp), createdAt };
    }
  }

  async *listUnowned(owner: string) {
    for (const { stamp, createdAt } of [...this.#sandboxes.values()]) {
      const what = stamp.attemptId;
      if (stamp.owner !== owner) yield { owner: stamp.owner, what, parts: [what], createdAt };
    }
  }

  async pause(handle: Handle) {
    const sandbox = this.#sandbox(handle);
    sandbox.paused = true;
    for (const process of sandbox.processes) process.freeze();
    return 'frozen' as const;
  }

  async resume(handle: Handle): Promise<void> {
    const sandbox = this.#sandbox(handle);
    sandbox.paused = false;
    for (const process of sandbox.processes) process.thaw();
  }

  async snapshot(
    handle: Handle,
    { snapshotId, owner }: { readonly snapshotId: string; readonly owner: string },
  ) {
    const { tree } = this.#sandbox(handle);
    if (!this.#snapshots.has(snapshotId)) this.#snapshots.set(snapshotId, { owner, tree: tree.copy() });
    return { ref: snapshotId, sizeBytes: null };
  }

  async deleteSnapshot(ref: Json): Promise<void> {
    this.#snapshots.delete(String(ref));
  }

  #make(spec: ProvisionSpec, tree: () => FileTree, ctx: ExtensionContext): Handle {
    refuseMisfit(this.header, spec);
    if (ctx.signal.aborted) throw this.#error('SBX_CANCELLED', 'It was given up before it began.');
    const { stamp } = spec;
    if (!this.#sandboxes.has(stamp.attemptId)) {
      const createdAt = ctx.clock.now();
      this.#sandboxes.set(stamp.attemptId, {
        stamp,
        createdAt,
        tree: tree(),
        processes: new Set(),
        paused: false,
      });
    }
    return this.#handle(stamp);
  }

  #spawn(sandbox: MemorySandbox, spec: SpawnSpec): MemoryProcess {
    if (spec.terminal !== null) throw this.#error('SBX_UNSUPPORTED', 'There are no terminals here.');
    if (spec.background) throw this.#error('SBX_UNSUPPORTED', 'Nothing runs in the background here.');
    if (spec.user !== null) throw this.#error('SBX_UNSUPPORTED', 'There is one user only.');
    this.#spawned += 1;
    const process = new MemoryProcess(`p${this.#spawned}`, spec, sandbox.tree);
    sandbox.processes.add(process);
    void process.exit.then(() => sandbox.processes.delete(process));
    return process;
  }

  #handle({ attemptId }: Stamp): Handle {
    return { version: HANDLE_VERSION, data: attemptId };
  }

  #sandbox({ data }: Handle): MemorySandbox {
    const sandbox = this.#sandboxes.get(String(data));
    if (sandbox !== undefined) return sandbox;
    throw this.#error('SBX_BACKEND_LOST', 'There is no such sandbox.');
  }

  #error(code: ConstructorParameters<typeof SandboxerError>[0], detail: string): SandboxerError {
    return new SandboxerError(code, detail, { backend: this.header.id, creation: 'not_created' });
  }
}

/** Makes a backend without latency, for benchmarks and for tests of the layers above a backend. */
export function createMemoryExtension(options: MemoryExtensionOptions = {}): Extension {
  const { id = 'ext.memory', price = null, demo = true, runsOn } = options;
  return new MemoryExtension({
    id,
    title: 'Sandboxes in memory',
    handleVersion: HANDLE_VERSION,
    capabilities: { ...CAPABILITIES, demo, pricing: price === null ? 'free' : 'metered' },
    price,
    provisionTimeoutSeconds: 30,
    ...(runsOn === undefined ? {} : { runsOn }),
  });
}
