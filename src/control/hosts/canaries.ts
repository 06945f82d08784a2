import { SandboxerError } from '../../contract/errors/errors.ts';
import type { CanaryRecord, CanaryResult } from '../../core/hosts/canary.ts';
import { canaryRecipe, judgeCanary } from '../../core/hosts/canary.ts';
import type { HostRecord } from '../../core/hosts/host.ts';
import { bookedHost } from '../../core/hosts/host.ts';
import { attemptIdOf } from '../../core/lifecycle/attempt.ts';
import type {
  Extension,
  ExtensionContext,
  Handle,
  ProvisionSpec,
  Stamp,
} from '../../core/ports/extension.ts';
import { NO_INPUTS } from '../../core/ports/inputs.ts';
import { serves } from '../../core/routing/placement.ts';
import type { Caller } from '../../core/tenancy/caller.ts';
import { requireScope } from '../../core/tenancy/caller.ts';
import { contextFor } from '../backends/backend-context.ts';
import { within } from '../backends/within.ts';
import type { Control } from '../control.ts';
import type { ControlPorts } from '../ports/control-ports.ts';
import { getHost } from './manage-hosts.ts';

/**
 * A canary is a sandbox without an owner: it is journalled apart, so that no workspace sees it, nothing is charged for it, and it
 * counts against no limit. Its stamp is ours, and its row outlives a crash: whatever happens, it is torn down.
 */

const LIFE_MS = 600_000;
const EXEC_MS = 60_000;
/** Hosts tried at once. */
const AT_ONCE = 4;

/** Returns the backends that a host is tried with: those that it serves, and that need no input or bring a trial input. */
function canaryBackends(deps: ControlPorts, host: HostRecord): readonly Extension[] {
  const local = host.spec.ssh === null;
  return deps.extensions.all().filter(({ header, canary }) => {
    if (header.capabilities.demo || (header.needsInput !== undefined && canary === undefined)) return false;
    if (!local) return header.runsOn === 'hosts' && serves(host, header.id);
    const here = header.runsOn !== 'hosts' && header.capabilities.hosting === 'self-hosted';
    return here && deps.extensions.health(header.id).status === 'healthy';
  });
}

function stampOf(deps: ControlPorts, { sandboxUid, attemptId }: CanaryRecord): Stamp {
  return { owner: deps.owner, sandboxUid, attemptId };
}

async function firstExec(
  extension: Extension,
  handle: Handle,
  argv: readonly string[],
  ctx: ExtensionContext,
) {
  const session = await extension.connect(handle, ctx);
  try {
    const program = await session.spawn({
      argv,
      env: {},
      cwd: null,
      user: null,
      timeoutSeconds: 30,
      terminal: null,
      stdin: false,
      background: false,
    });
    for await (const _ of program.output);
    const { code } = await program.exit;
    if (code !== 0) throw new SandboxerError('SBX_EXTENSION_FAILED', `Its first program ended with ${code}.`);
  } finally {
    await session.close();
  }
}

interface TrialWatch {
  readonly lap: (what: 'readyMs' | 'execMs') => void;
  readonly signal: AbortSignal;
}

async function establish(
  deps: ControlPorts,
  extension: Extension,
  record: CanaryRecord,
  { lap, signal }: TrialWatch,
): Promise<readonly string[]> {
  const { header } = extension;
  const ctx = await contextFor(deps, record.hostId, signal);
  const kit = await extension.canary?.(ctx);
  const spec: ProvisionSpec = {
    stamp: stampOf(deps, record),
    sandboxId: record.sandboxUid,
    workspaceId: 'canary',
    generation: 1,
    recipe: canaryRecipe(header),
    labels: {},
    secrets: [],
    inputs: kit?.inputs ?? NO_INPUTS,
    endsAt: deps.clock.now() + LIFE_MS,
  };
  const { handle, notes } = await within(
    deps,
    header.provisionTimeoutSeconds * 1000,
    signal,
    async (given) => {
      const made = await extension.provision(spec, { ...ctx, signal: given });
      const ready = await extension.waitReady(made, { ...ctx, signal: given });
      return { handle: made, notes: ready.notes };
    },
  );
  lap('readyMs');
  await within(deps, EXEC_MS, signal, (given) =>
    firstExec(extension, handle, kit?.argv ?? ['true'], { ...ctx, signal: given }),
  );
  lap('execMs');
  return notes;
}

/** Whether nothing of it is left; then it is on record no more. */
async function tearDown(
  deps: ControlPorts,
  extension: Extension,
  record: CanaryRecord,
  signal: AbortSignal,
): Promise<boolean> {
  const { gone } = await within(deps, deps.settings.teardownTimeoutMs, signal, async (given) =>
    extension.teardown(
      { stamp: stampOf(deps, record), handle: null },
      await contextFor(deps, record.hostId, given),
    ),
  );
  if (gone) await deps.store.transaction('canary-gone', (tx) => tx.canaries.remove(record.attemptId));
  return gone;
}

const wordsOf = (error: unknown) =>
  error instanceof SandboxerError ? error.detail : 'The canary failed for an unknown reason.';

async function trial(
  deps: ControlPorts,
  extension: Extension,
  record: CanaryRecord,
  signal: AbortSignal,
): Promise<CanaryResult> {
  const times: Record<'readyMs' | 'execMs' | 'goneMs', number | null> = {
    readyMs: null,
    execMs: null,
    goneMs: null,
  };
  let since = deps.clock.now();
  const lap = (what: keyof typeof times) => {
    times[what] = deps.clock.now() - since;
    since = deps.clock.now();
  };
  let problem: string | null = null;
  let notes: readonly string[] = [];
  try {
    notes = await establish(deps, extension, record, { lap, signal });
  } catch (error) {
    signal.throwIfAborted();
    problem = wordsOf(error);
  }
  since = deps.clock.now();
  try {
    if (await tearDown(deps, extension, record, signal)) lap('goneMs');
    else problem ??= 'It was not removed whole.';
  } catch (error) {
    signal.throwIfAborted();
    problem ??= `It was not removed: ${wordsOf(error)}`;
  }
  return {
    extensionId: record.extensionId,
    at: deps.clock.now(),
    ok: problem === null,
    ...times,
    problem,
    notes,
  };
}

async function keep(deps: ControlPorts, hostId: string, result: CanaryResult): Promise<void> {
  const { extensionId, at, ok, readyMs, execMs, goneMs, problem } = result;
  await deps.store.transaction('canary-result', async (tx) => {
    const host = await tx.hosts.get(hostId);
    if (!host) return;
    const { canaries = {} } = host.health;
    const standing = judgeCanary(canaries[extensionId], result);
    const health = { ...host.health, canaries: { ...canaries, [extensionId]: standing } };
    await tx.hosts.update({ ...host, health });
    const data = {
      extension: extensionId,
      ok,
      ready_ms: readyMs,
      exec_ms: execMs,
      destroyed_ms: goneMs,
      problem,
    };
    await tx.hosts.addSample({ hostId, kind: 'canary', at, data });
  });
}

/** Tries every backend of a host, one after the other. A stop of the server leaves the rest to the next start. */
async function tryHost(
  deps: ControlPorts,
  host: HostRecord,
  backends: readonly Extension[],
  signal: AbortSignal,
): Promise<readonly CanaryResult[]> {
  const results: CanaryResult[] = [];
  for (const extension of backends) {
    signal.throwIfAborted();
    const sandboxUid = deps.ids.next('canary');
    const record: CanaryRecord = {
      attemptId: attemptIdOf(sandboxUid, 1, 1),
      sandboxUid,
      hostId: host.id,
      extensionId: extension.header.id,
      startedAt: deps.clock.now(),
    };
    await deps.store.transaction('canary', (tx) => tx.canaries.insert(record));
    const place = { extensionId: record.extensionId, hostId: bookedHost(host) };
    deps.health.takeTrial(place, record.startedAt);
    const result = await trial(deps, extension, record, signal);
    // Returns a later time than that of every judgement before: a series has one figure at a time, and a restart reads them in
    // order.
    const at = deps.health.nextJudgementAt(result.at);
    await keep(deps, host.id, { ...result, at });
    deps.health.probed(place, result.ok, at);
    results.push({ ...result, at });
  }
  return results;
}

interface RunCanary {
  readonly hostId: string;
  readonly signal: AbortSignal;
}

/** Runs the canaries of a host now, on request. */
export async function runCanary(
  control: Control,
  caller: Caller,
  { hostId, signal }: RunCanary,
): Promise<readonly CanaryResult[]> {
  requireScope(caller, 'server');
  const { host } = await getHost(control, caller, { id: hostId });
  if (host.spec.class === 'production')
    throw new SandboxerError(
      'SBX_INVALID_REQUEST',
      `${hostId} is a production host, which is never a target.`,
      {
        field: 'host',
        creation: 'not_created',
        remedy: 'Name another host; or register this one as class "sandbox" if sandboxes may run there.',
      },
    );
  return tryHost(control, host, canaryBackends(control, host), signal);
}

async function lastTried(deps: ControlPorts, host: HostRecord): Promise<number> {
  const [last] = await deps.store.read('last-canary', (tx) => tx.hosts.samples(host.id, 'canary', 1));
  return last?.at ?? host.createdAt;
}

/** Whether the backend was avoided for its failures, and the pause is over. */
function awaitsTrial({ health, clock }: ControlPorts, host: HostRecord, { header }: Extension): boolean {
  return health.awaitsTrial({ extensionId: header.id, hostId: bookedHost(host) }, clock.now());
}

/**
 * Tries the hosts that are due, and backends that wait for a trial; returns when the next host is due. A trial that hangs delays
 * only its own batch.
 */
export async function runDueCanaries(
  deps: ControlPorts,
  everyMs: number,
  signal: AbortSignal,
): Promise<number> {
  const hosts = await deps.store.read('hosts', (tx) => tx.hosts.list());
  const due: { readonly host: HostRecord; readonly backends: readonly Extension[] }[] = [];
  let next = deps.clock.now() + everyMs;
  for (const host of hosts) {
    if (host.spec.class !== 'sandbox' || host.state === 'draining') continue;
    const at = (await lastTried(deps, host)) + everyMs;
    const backends = canaryBackends(deps, host);
    const isDue = at <= deps.clock.now();
    const left = isDue ? backends : backends.filter((backend) => awaitsTrial(deps, host, backend));
    if (left.length > 0) due.push({ host, backends: left });
    if (!isDue) next = Math.min(next, at);
  }
  for (let from = 0; from < due.length; from += AT_ONCE) {
    const tries = due.slice(from, from + AT_ONCE).map(async ({ host, backends }) => {
      await tryHost(deps, host, backends, signal).catch((error: unknown) => {
        signal.throwIfAborted();
        deps.log.warn({ err: error, host: host.id }, 'a canary could not be run');
      });
    });
    await Promise.all(tries);
  }
  return next;
}

/** Tears down canaries begun before `before` and still on record: an earlier process left them, or they could not be removed. */
export async function sweepCanaries(deps: ControlPorts, before: number, signal: AbortSignal): Promise<void> {
  const left = await deps.store.read('canaries', (tx) => tx.canaries.list());
  for (const record of left.filter(({ startedAt }) => startedAt < before)) {
    const extension = deps.extensions.get(record.extensionId);
    const host = await deps.store.read('canary-host', (tx) => tx.hosts.get(record.hostId));
    try {
      if (extension && host) await tearDown(deps, extension, record, signal);
      // Its host or backend is no longer registered, so it cannot be reached any more.
      else await deps.store.transaction('canary-forgotten', (tx) => tx.canaries.remove(record.attemptId));
    } catch (error) {
      signal.throwIfAborted();
      deps.log.warn({ err: error, canary: record.attemptId }, 'a canary could not be removed yet');
    }
  }
}
