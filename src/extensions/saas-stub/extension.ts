import { z } from 'zod';
import { SandboxerError } from '../../contract/errors/errors.ts';
import type { ExtensionHealth } from '../../contract/extensions/extension.ts';
import type { Json } from '../../contract/values/json.ts';
import type { PauseKind } from '../../contract/values/state.ts';
import { isoTime } from '../../core/ports/clock.ts';
import type {
  CleanupReport,
  Extension,
  ExtensionContext,
  ExtensionHeader,
  Handle,
  Owned,
  ProvisionSpec,
  Ready,
  SnapshotSpec,
  TakenSnapshot,
  TeardownTarget,
} from '../../core/ports/extension.ts';
import type { SandboxSession } from '../../core/ports/session.ts';
import { refuseMisfit } from '../../core/routing/refuse-misfit.ts';
import type { SaasStubOptions } from './config.ts';
import { handles, readSnapshotRef, snapshotRefOf } from './handle.ts';
import { CallOnlySession } from './session/call-only-session.ts';
import { ChannelSession } from './session/channel-session.ts';
import { callError, replyError, unreadableReply } from './wire/backend-error.ts';
import { bootOf, faultsOf } from './wire/boot.ts';
import type { MakeRequest, StubRequest } from './wire/protocol.ts';
import { GoneBody, HealthBody, ListBody, ObjectBody, SnapshotBody, UsageBody } from './wire/protocol.ts';
import type { StubTransport } from './wire/transport.ts';
import { StubConnectionError } from './wire/transport.ts';

/** Short enough for any proxy between the server and a remote stub. */
const POLL_MS = 20_000;
const TEARDOWN_WAIT_MS = 10_000;
const PAGE_SIZE = 100;

const EmptyBody = z.strictObject({});

export class SaasStubExtension implements Extension {
  readonly header: ExtensionHeader;
  readonly #transport: StubTransport;
  readonly #teardownWaitMs: number;
  readonly #pageSize: number;

  constructor(header: ExtensionHeader, options: SaasStubOptions) {
    this.header = header;
    this.#transport = options.transport;
    this.#teardownWaitMs = options.teardownWaitMs ?? TEARDOWN_WAIT_MS;
    this.#pageSize = options.pageSize ?? PAGE_SIZE;
  }

  async probe(ctx: ExtensionContext): Promise<ExtensionHealth> {
    const checked_at = isoTime(ctx.clock.now());
    try {
      await this.#call({ op: 'health' }, HealthBody, ctx);
      return { status: 'healthy', detail: 'The stub answers.', checked_at, checks: [] };
    } catch (error) {
      ctx.signal.throwIfAborted();
      if (error instanceof SandboxerError && error.code === 'SBX_BACKEND_AUTH') {
        const detail =
          'The stub answers, and refuses the key of the configuration: stored provider keys may do.';
        return { status: 'healthy', detail, checked_at, checks: [] };
      }
      const absent =
        error instanceof Error && error.cause instanceof StubConnectionError && !error.cause.sent;
      const detail = error instanceof Error ? error.message : 'The stub does not answer.';
      const fix = absent ? 'Start the stub, or correct its address.' : null;
      const check = { name: 'stub answers', ok: false, detail, fix };
      return { status: absent ? 'undetected' : 'unhealthy', detail, checked_at, checks: [check] };
    }
  }

  async checkKey(ctx: ExtensionContext): Promise<void> {
    await this.#call({ op: 'health' }, HealthBody, ctx);
  }

  async provision(spec: ProvisionSpec, ctx: ExtensionContext): Promise<Handle> {
    return await this.#make({ op: 'create', ...this.#makes(spec) }, ctx);
  }

  async restore(spec: ProvisionSpec, ref: Json, ctx: ExtensionContext): Promise<Handle> {
    const snapshot_id = readSnapshotRef(ref);
    return await this.#make({ op: 'restore', ...this.#makes(spec), snapshot_id }, ctx);
  }

  async fork(source: Handle, spec: ProvisionSpec, ctx: ExtensionContext): Promise<Handle> {
    return await this.#make({ op: 'fork', ...this.#makes(spec), source: handles.read(source).name }, ctx);
  }

  async waitReady(handle: Handle, ctx: ExtensionContext): Promise<Ready> {
    const at = handles.read(handle);
    for (;;) {
      const request = { op: 'wait_running', ...at, timeout_ms: POLL_MS } as const;
      const { object } = await this.#call(request, ObjectBody, ctx);
      if (object.state === 'running') break;
      if (object.state !== 'creating') throw this.#wrongState(object.state);
    }
    await this.#call({ op: 'exec', ...at }, ObjectBody, ctx);
    return {
      reachability: { exec_url: null, ssh: null, tunnel_ref: null, endpoints: [], services: [] },
      isolation: 'none',
      notes: ['A stub for tests and demos: commands run on the stub’s own machine, isolated from nothing.'],
    };
  }

  async connect(handle: Handle, ctx: ExtensionContext): Promise<SandboxSession> {
    const at = handles.read(handle);
    const { object } = await this.#call({ op: 'get', ...at }, ObjectBody, ctx);
    if (object.state !== 'running') throw this.#wrongState(object.state);
    const open = this.#transport.open?.bind(this.#transport);
    const { key } = ctx;
    if (open !== undefined) {
      const opened = (...[request, signal]: Parameters<typeof open>) => open(request, signal, key);
      return new ChannelSession(at, opened, this.header.id);
    }
    return new CallOnlySession(async (signal) => {
      await this.#call({ op: 'exec', ...at }, ObjectBody, { signal, ...(key !== undefined && { key }) });
    });
  }

  async teardown({ stamp }: TeardownTarget, ctx: ExtensionContext): Promise<CleanupReport> {
    const at = { name: stamp.attemptId, owner: stamp.owner };
    const until = ctx.clock.now() + this.#teardownWaitMs;
    const first = await this.#call({ op: 'delete', ...at }, GoneBody, ctx);
    const removed = first.removed ? [`sandbox ${at.name}`] : [];
    for (let last = first; ; ) {
      const left = until - ctx.clock.now();
      const waitable = last.remaining.some(({ what }) => what.startsWith('sandbox'));
      if (last.gone || !waitable || left <= 0) return { gone: last.gone, removed, remaining: last.remaining };
      const request = { op: 'wait_gone', ...at, timeout_ms: Math.ceil(Math.min(left, POLL_MS)) } as const;
      last = await this.#call(request, GoneBody, ctx);
    }
  }

  async *listOwned(owner: string, ctx: ExtensionContext): AsyncIterable<Owned> {
    let cursor: string | null = null;
    do {
      const request: StubRequest = { op: 'list', owner, cursor, limit: this.#pageSize };
      const page: z.infer<typeof ListBody> = await this.#call(request, ListBody, ctx);
      for (const { name, labels, created_at, state } of page.items) {
        if (labels.owner !== owner) continue;
        const stamp = { sandboxUid: labels.sandbox_uid, attemptId: labels.attempt_id, owner: labels.owner };
        const told = state === 'running' || state === 'paused' ? { paused: state === 'paused' } : {};
        yield { stamp, handle: handles.write({ name, owner }), createdAt: created_at, ...told };
      }
      cursor = page.next_cursor;
    } while (cursor !== null);
  }

  async pause(handle: Handle, ctx: ExtensionContext): Promise<PauseKind> {
    await this.#call({ op: 'pause', ...handles.read(handle) }, ObjectBody, ctx);
    return 'frozen';
  }

  async resume(handle: Handle, ctx: ExtensionContext): Promise<void> {
    await this.#call({ op: 'resume', ...handles.read(handle) }, ObjectBody, ctx);
  }

  async snapshot(handle: Handle, spec: SnapshotSpec, ctx: ExtensionContext): Promise<TakenSnapshot> {
    const request = {
      op: 'snapshot',
      ...handles.read(handle),
      snapshot_id: spec.snapshotId,
      title: spec.name,
    } as const;
    const { snapshot_id } = await this.#call(request, SnapshotBody, ctx);
    return { ref: snapshotRefOf(snapshot_id), sizeBytes: null };
  }

  async deleteSnapshot(ref: Json | null, spec: SnapshotSpec, ctx: ExtensionContext): Promise<void> {
    const snapshot_id = ref === null ? spec.snapshotId : readSnapshotRef(ref);
    const request = { op: 'delete_snapshot', snapshot_id, owner: spec.owner } as const;
    await this.#call(request, EmptyBody, ctx);
  }

  async extendLife(handle: Handle, endsAt: number, ctx: ExtensionContext): Promise<void> {
    await this.#call({ op: 'extend', ...handles.read(handle), ends_at: endsAt }, ObjectBody, ctx);
  }

  async usage(handle: Handle, ctx: ExtensionContext): Promise<{ readonly billedSeconds: number }> {
    const { billed_ms } = await this.#call({ op: 'usage', ...handles.read(handle) }, UsageBody, ctx);
    return { billedSeconds: billed_ms / 1000 };
  }

  async close(): Promise<void> {
    await this.#transport.close?.();
  }

  #makes(spec: ProvisionSpec) {
    refuseMisfit(this.header, spec);
    const { sandboxUid, attemptId, owner } = spec.stamp;
    return {
      name: attemptId,
      labels: { sandbox_uid: sandboxUid, attempt_id: attemptId, owner },
      ends_at: Math.floor(spec.endsAt),
      boot: bootOf(spec),
      faults: faultsOf(spec, this.header.id),
    };
  }

  async #make(request: MakeRequest, ctx: ExtensionContext): Promise<Handle> {
    await this.#call(request, ObjectBody, ctx, true);
    return handles.write({ name: request.name, owner: request.labels.owner });
  }

  async #call<Body>(
    request: StubRequest,
    body: z.ZodType<Body>,
    { signal, key }: Pick<ExtensionContext, 'signal' | 'key'>,
    creates = false,
  ): Promise<Body> {
    const scope = { extensionId: this.header.id, creates };
    if (signal.aborted)
      throw callError(new StubConnectionError('It was given up before it began.', false), scope, signal);
    const reply = await this.#transport.call(request, signal, key).catch((thrown: unknown) => {
      throw callError(thrown, scope, signal);
    });
    if (reply.status >= 300) throw replyError(reply, scope);
    const parsed = body.safeParse(reply.body);
    if (!parsed.success) throw unreadableReply(scope, parsed.error);
    return parsed.data;
  }

  #wrongState(state: string): SandboxerError {
    return new SandboxerError('SBX_INVALID_STATE', `The stub has it as ${state}.`, {
      backend: this.header.id,
    });
  }
}
