/** Chooses the engine of a host that a stack runs on. */
import { z } from 'zod';
import { SandboxerError } from '../../../contract/errors/errors.ts';
import type { SshHost } from '../../shared/ssh/ssh-host.ts';
import type { EngineRecord, EngineWish } from './engine-record.ts';
import { ROOTFUL } from './engine-record.ts';
import { FIND_ROOTLESS, PROVE } from './engine-scripts.ts';
import { BACKEND, shown } from './failure.ts';
import type { Call } from './run-script.ts';
import { runScript } from './run-script.ts';

/** Returns the record as arguments of scripts. */
export function recordWords({ kind, endpoint }: EngineRecord): readonly [kind: string, endpoint: string] {
  return [kind, endpoint ?? '-'];
}

const LIMITS = ['cpu', 'memory_mb', 'pids'] as const;
export type EngineLimit = (typeof LIMITS)[number];

/** A rootless engine of the ssh user in which a container was started, paused and removed. */
export interface RootlessEngine {
  readonly endpoint: string;
  readonly version: string;
  /** Limits that the engine enforces: none without control groups of its user. */
  readonly limits: readonly EngineLimit[];
}

/** The host's rootless engine, proven, or why there is none. */
export type RootlessFinding = { readonly engine: RootlessEngine } | { readonly missing: string };

/** Fields of `docker info`. */
const EngineInfo = z.object({
  ServerVersion: z.string().regex(/^[\w.+~-]{1,64}$/),
  SecurityOptions: z.array(z.string()),
  MemoryLimit: z.boolean().default(false),
  PidsLimit: z.boolean().default(false),
  CpuCfsQuota: z.boolean().default(false),
});

const FIND_MS = 20_000;
const PROVE_MS = 60_000;

/** Reads a line `engine ENDPOINT JSON`; returns `null` for an engine that is not rootless. */
export function readRootless(line: string): RootlessEngine | null {
  const [, endpoint, text] = /^engine (unix:\/\/\/[\w./-]+) (\{.*\})$/.exec(line) ?? [];
  if (endpoint === undefined || text === undefined) return null;
  try {
    const info = EngineInfo.parse(JSON.parse(text));
    if (!info.SecurityOptions.some((option) => option.split(',').includes('name=rootless'))) return null;
    const held = { cpu: info.CpuCfsQuota, memory_mb: info.MemoryLimit, pids: info.PidsLimit };
    return { endpoint, version: info.ServerVersion, limits: LIMITS.filter((name) => held[name]) };
  } catch {
    return null;
  }
}

/** Looks for a rootless engine of the ssh user, without a request to it. */
async function findRootless(host: SshHost, signal: AbortSignal): Promise<RootlessFinding> {
  const call: Call = { signal, creation: 'not_created', timeoutMs: FIND_MS };
  const { stdout } = await runScript(host, FIND_ROOTLESS, [], call);
  const lines = stdout.toString().split('\n');
  for (const line of lines) {
    const engine = readRootless(line);
    if (engine !== null) return { engine };
  }
  const silent = lines.find((line) => line.startsWith('silent '));
  if (silent !== undefined)
    return { missing: `Nothing answers at ${shown(silent.slice('silent '.length))}.` };
  return { missing: 'Our user has no rootless engine there.' };
}

export interface Proof {
  readonly root: string;
  /** Puts the agent on the host. */
  readonly agent: () => Promise<string>;
  readonly imageOf: (agent: string) => string;
}

/** Proves a rootless engine: a container of it is started, inspected, paused and removed. Rejects only when `signal` aborts. */
export async function proveRootless(
  host: SshHost,
  { root, agent, imageOf }: Proof,
  signal: AbortSignal,
): Promise<RootlessFinding> {
  try {
    const found = await findRootless(host, signal);
    if ('missing' in found) return found;
    const program = await agent();
    const args = [root, found.engine.endpoint, program, imageOf(program)];
    const call: Call = { signal, creation: 'not_created', timeoutMs: PROVE_MS };
    const { code, stdout, stderr } = await runScript(host, PROVE, args, call);
    if (code === 0 && stdout.toString().trim() === 'proven') return found;
    return {
      missing: `No container could be run by the rootless engine at ${found.engine.endpoint}: ${shown(stderr) || `the trial ended with ${code}`}.`,
    };
  } catch (error) {
    signal.throwIfAborted();
    const why = error instanceof SandboxerError ? error.detail : 'the trial failed.';
    return { missing: `A rootless engine could not be tried: ${why}` };
  }
}

export interface Offer {
  /** The version of the engine that `docker` reaches by itself; `null` where there is none. */
  readonly engine: string | null;
  readonly rootless: RootlessFinding;
}

export interface Demand {
  readonly resources: Readonly<Record<EngineLimit, number | null>>;
  readonly elevated: boolean;
  /** Limits that the compose file itself names. */
  readonly declared: readonly EngineLimit[];
}

/** Limits that every stack needs: without them one stack could use up the host. */
const ALWAYS: readonly EngineLimit[] = ['memory_mb', 'pids'];

/** Chooses the engine of a new stack; `why` gives the reason why an existing rootless engine was not taken. */
export function chooseEngine(
  { engine, rootless }: Offer,
  wish: EngineWish,
  { resources, elevated, declared }: Demand,
): { readonly record: EngineRecord; readonly why: string | null } {
  if (wish === 'rootful') return { record: rootfulOf(engine), why: null };
  if ('missing' in rootless) {
    if (wish === 'rootless') throw unfit(rootless.missing);
    return { record: rootfulOf(engine), why: null };
  }
  const { endpoint, limits } = rootless.engine;
  const record: EngineRecord = { kind: 'rootless', endpoint };
  const named = LIMITS.filter((name) => resources[name] !== null);
  if (wish === 'rootless') {
    const unheld = named.filter((name) => !limits.includes(name));
    if (unheld.length === 0) return { record, why: null };
    throw unfit(`The rootless engine does not enforce ${unheld.join(', ')}.`);
  }
  const wanted = LIMITS.filter((name) => [...ALWAYS, ...named, ...declared].includes(name));
  const unheld = wanted.filter((name) => !limits.includes(name));
  if (unheld.length > 0)
    return {
      record: rootfulOf(engine),
      why: `The rootless engine of the host was not chosen: it does not enforce ${unheld.join(', ')}.`,
    };
  if (elevated && engine !== null) return { record: ROOTFUL, why: null };
  return { record, why: null };
}

/** Throws where the recorded engine of a stack or its snapshot is not the engine that it needs. */
export function checkEngine(
  record: EngineRecord,
  { rootless }: Offer,
  wish: EngineWish,
  resources: Demand['resources'],
): void {
  if (wish === 'rootless' && record.kind === 'rootful')
    throw unfit('What was kept runs on the rootful engine of the host, where its images are.');
  const unheld = unheldBy(record, rootless).filter((name) => resources[name] !== null);
  if (unheld.length > 0) throw unfit(`The rootless engine does not enforce ${unheld.join(', ')}.`);
}

/** Describes the engines that stacks are placed on, or why there is no rootless one. */
export function enginesText({ engine, rootless }: Offer): string {
  const own = engine === null ? 'no rootful engine' : `engine ${engine}`;
  if ('missing' in rootless) return `${own}, rootless: none: ${rootless.missing}`;
  const { version, limits } = rootless.engine;
  return `${own}, rootless engine ${version} (a container was started; enforces ${limits.join(', ') || 'no limits'})`;
}

function rootfulOf(engine: string | null): EngineRecord {
  if (engine !== null) return ROOTFUL;
  throw unfit('Our user may use no rootful engine there, and the rootless one does not fit.');
}

function unfit(detail: string): SandboxerError {
  return new SandboxerError('SBX_UNSUPPORTED', detail, {
    backend: BACKEND,
    creation: 'not_created',
    remedy:
      'See "Rootless engines" in docs/guides/compose.md: a rootless engine needs control groups (cgroup v2) that are delegated to its user.',
  });
}

/** Returns the limits that the engine of a stack ignores: none with control groups of its user. */
export function unheldBy(
  { kind, endpoint }: EngineRecord,
  rootless: RootlessFinding,
): readonly EngineLimit[] {
  if (kind === 'rootful') return [];
  const { limits } =
    'engine' in rootless && rootless.engine.endpoint === endpoint ? rootless.engine : { limits: [] };
  return LIMITS.filter((name) => !(limits as readonly EngineLimit[]).includes(name));
}

/** Describes the isolation of a stack for its notes. */
export function engineNote({ kind }: EngineRecord): string {
  return kind === 'rootless'
    ? 'The stack runs on a rootless engine: root of a container is the ssh user of the host.'
    : 'For stacks you trust: root of a container is root of the host, unless its engine remaps users.';
}
