import { SandboxerError } from '../../contract/errors/errors.ts';
import type { HostSpec } from '../../contract/extensions/host.ts';
import type { HostLoad, HostRecord, HostSample, ProbeResult } from '../../core/hosts/host.ts';
import { judgeHost, LOCAL_HOST, UNPROBED } from '../../core/hosts/host.ts';
import type { HostFigures } from '../../core/hosts/host-facts.ts';
import { hostFigures, readHostFacts } from '../../core/hosts/host-facts.ts';
import type { Tx } from '../../core/ports/store/store.ts';
import { digestOf } from '../../core/recipe/canonical-json.ts';
import type { Caller } from '../../core/tenancy/caller.ts';
import { requireScope } from '../../core/tenancy/caller.ts';
import type { Control } from '../control.ts';
import type { ControlPorts } from '../ports/control-ports.ts';
import { auditedTransaction } from '../requests/audit.ts';

export interface HostView {
  readonly host: HostRecord;
  readonly load: HostLoad;
}

const NO_LOAD: HostLoad = { sandboxes: 0, millicpu: 0, memoryMb: 0 };
const SAMPLES_SHOWN = 500;

function newHost(spec: HostRecord['spec'], source: HostRecord['source'], now: number): HostRecord {
  return { id: spec.id, version: 1, source, spec, state: 'active', health: UNPROBED, createdAt: now };
}

async function find(tx: Tx, id: string): Promise<HostRecord> {
  const host = await tx.hosts.get(id);
  if (host) return host;
  throw new SandboxerError('SBX_NOT_FOUND', `There is no host "${id}".`, {
    remedy: 'List the hosts to see which are registered.',
  });
}

async function viewOf(tx: Tx, host: HostRecord): Promise<HostView> {
  return { host, load: (await tx.attempts.hostLoads())[host.id] ?? NO_LOAD };
}

/** Registers a host, or changes its registration. Hosts of the configuration file are changed there. */
export async function addHost(control: Control, caller: Caller, spec: HostSpec): Promise<HostView> {
  requireScope(caller, 'server');
  if (spec.id === LOCAL_HOST) throw builtIn();
  const subject = { action: 'addHost', target: spec.id, details: { class: spec.class } };
  return auditedTransaction(control, caller, { label: 'add-host', subject }, async (tx) => {
    const existing = await tx.hosts.get(spec.id);
    if (existing?.source === 'file') throw fromFile(spec.id);
    const fresh = newHost(spec, 'api', control.clock.now());
    if (!existing) await tx.hosts.insert(fresh);
    const host = existing ? await tx.hosts.update({ ...existing, spec, health: UNPROBED }) : fresh;
    return viewOf(tx, host);
  });
}

function builtIn(): SandboxerError {
  return new SandboxerError('SBX_CONFLICT', `The host ${LOCAL_HOST} is the machine of the server.`, {
    retryable: false,
    remedy: 'Give it a capacity in the configuration file, under hosts.local; or drain it.',
  });
}

function fromFile(id: string): SandboxerError {
  return new SandboxerError('SBX_CONFLICT', `The host ${id} is in the configuration file.`, {
    retryable: false,
    remedy: 'Change the file and restart the server.',
  });
}

/** The settings for the machine of the server. */
export type LocalTerms = Pick<HostSpec, 'labels' | 'capacity' | 'cost_micro_usd_per_hour'>;

function localSpec(terms: LocalTerms): HostRecord['spec'] {
  return { id: LOCAL_HOST, class: 'sandbox', ssh: null, extensions: [], isolation: [], ...terms };
}

async function alignLocal(tx: Tx, deps: ControlPorts, terms: LocalTerms): Promise<void> {
  const before = await tx.hosts.get(LOCAL_HOST);
  const spec = localSpec(terms);
  if (!before) await tx.hosts.insert(newHost(spec, 'server', deps.clock.now()));
  else if (digestOf(before.spec) !== digestOf(spec)) await tx.hosts.update({ ...before, spec });
}

/** Aligns the host rows with the file at the start. A host that only the file had, and that is no longer in use, is removed. */
export async function alignHosts(
  deps: ControlPorts,
  specs: readonly HostSpec[],
  local: LocalTerms,
): Promise<void> {
  await deps.store.transaction('align-hosts', async (tx) => {
    await alignLocal(tx, deps, local);
    const known = new Map((await tx.hosts.list()).map((host) => [host.id, host]));
    const loads = await tx.attempts.hostLoads();
    for (const spec of specs) {
      const before = known.get(spec.id);
      known.delete(spec.id);
      if (!before) await tx.hosts.insert(newHost(spec, 'file', deps.clock.now()));
      else if (before.source !== 'file' || digestOf(before.spec) !== digestOf(spec))
        await tx.hosts.update({ ...before, source: 'file', spec, health: UNPROBED });
    }
    for (const host of known.values()) {
      if (host.source !== 'file') continue;
      // A host that still runs sandboxes stays until they are torn down.
      if (loads[host.id]) await tx.hosts.update({ ...host, state: 'draining' });
      else await tx.hosts.remove(host.id);
    }
  });
}

export async function listHosts(control: Control, caller: Caller): Promise<readonly HostView[]> {
  requireScope(caller, 'server');
  return control.store.read('hosts', async (tx) => {
    const loads = await tx.attempts.hostLoads();
    return (await tx.hosts.list()).map((host) => ({ host, load: loads[host.id] ?? NO_LOAD }));
  });
}

export async function getHost(
  control: Control,
  caller: Caller,
  { id }: { readonly id: string },
): Promise<HostView> {
  requireScope(caller, 'server');
  return control.store.read('host', async (tx) => viewOf(tx, await find(tx, id)));
}

interface HostSamples {
  readonly id: string;
  readonly kind: HostSample['kind'];
}

/** Returns the results of the latest probes or canaries of a host, newest first. */
export async function hostSamples(
  control: Control,
  caller: Caller,
  { id, kind }: HostSamples,
): Promise<readonly HostSample[]> {
  requireScope(caller, 'server');
  return control.store.read('host-samples', async (tx) => {
    await find(tx, id);
    return tx.hosts.samples(id, kind, SAMPLES_SHOWN);
  });
}

interface DrainHost {
  readonly id: string;
  readonly state: HostRecord['state'];
}

/** A draining host gets nothing new; what runs there goes on. Idempotent. */
export async function drainHost(
  control: Control,
  caller: Caller,
  { id, state }: DrainHost,
): Promise<HostView> {
  requireScope(caller, 'server');
  const subject = { action: state === 'draining' ? 'drainHost' : 'undrainHost', target: id };
  return auditedTransaction(control, caller, { label: 'drain-host', subject }, async (tx) => {
    const host = await find(tx, id);
    return viewOf(tx, host.state === state ? host : await tx.hosts.update({ ...host, state }));
  });
}

/** Removes a host. Refuses while anything of ours is there: it would be left behind. */
export async function removeHost(
  control: Control,
  caller: Caller,
  { id }: { readonly id: string },
): Promise<void> {
  requireScope(caller, 'server');
  await auditedTransaction(
    control,
    caller,
    { label: 'remove-host', subject: { action: 'removeHost', target: id } },
    async (tx) => {
      const { host, load } = await viewOf(tx, await find(tx, id));
      if (host.source === 'file') throw fromFile(id);
      if (host.source === 'server') throw builtIn();
      if (load.sandboxes > 0)
        throw new SandboxerError('SBX_INVALID_STATE', `${load.sandboxes} sandboxes are on ${id}.`, {
          remedy: `Drain it (sandboxer hosts drain ${id}) and destroy them, or wait until they have ended.`,
        });
      await tx.hosts.remove(id);
    },
  );
}

interface ProbeHost {
  readonly id: string;
  readonly signal: AbortSignal;
}

/** Looks at the host now; the judgement keeps its hysteresis. */
export async function probeHost(
  control: Control,
  caller: Caller,
  { id, signal }: ProbeHost,
): Promise<HostView & { readonly result: ProbeResult }> {
  const { host } = await getHost(control, caller, { id });
  const result = await probeOne(control, host, signal);
  return { ...(await getHost(control, caller, { id })), result };
}

function sampled(figures: HostFigures | undefined): HostSample['data'] {
  if (figures === undefined) return {};
  return {
    load_1m: figures.load1,
    memory_available_mb: figures.memoryAvailableMb,
    disk_free_mb: figures.diskFreeMb,
  };
}

async function probeOne(deps: ControlPorts, host: HostRecord, signal: AbortSignal): Promise<ProbeResult> {
  const result: ProbeResult = deps.hosts
    ? await deps.hosts.probe(host, signal)
    : { ok: false, detail: 'hosts are not configured' };
  await deps.store.transaction('host-health', async (tx) => {
    const now = await tx.hosts.get(host.id);
    if (!now) return;
    const at = deps.clock.now();
    const figures =
      result.ok && result.facts !== undefined ? hostFigures(readHostFacts(result.facts)) : undefined;
    await tx.hosts.update({ ...now, health: judgeHost(now.health, result, at, figures) });
    const data = { ok: result.ok, latency_ms: result.ok ? result.latencyMs : null, ...sampled(figures) };
    await tx.hosts.addSample({ hostId: host.id, kind: 'probe', at, data });
  });
  return result;
}

/** Probes all hosts at the same time: a host that hangs delays no other's verdict. */
export async function probeHosts(deps: ControlPorts, signal: AbortSignal): Promise<void> {
  const hosts = await deps.store.read('hosts', (tx) => tx.hosts.list());
  await Promise.allSettled(hosts.map((host) => probeOne(deps, host, signal)));
}
