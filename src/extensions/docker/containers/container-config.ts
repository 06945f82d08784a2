/** Builds the engine's configuration of a container. It has no secret, and no right that was not requested. */
import type { ProvisionSpec } from '../../../core/ports/extension.ts';
import { DOOR_SOCKET } from '../../shared/channel/agent-door.ts';
import type { EngineFacts } from '../engine/engine-facts.ts';
import type { Kind } from './labels.ts';
import { LABEL } from './labels.ts';
import type { DockerOptions } from './options.ts';
import { DEFAULTS } from './options.ts';

export const INSIDE = {
  agent: '/.sandboxer/agent',
  /** The directory of the host's socket, mounted read-only. */
  door: '/.sandboxer/door',
  socket: `/.sandboxer/door/${DOOR_SOCKET}`,
  /** The directory of the agent's socket, where the host's files cannot be mounted. */
  run: '/run/sandboxer',
  relay: '/run/sandboxer/a.sock',
  work: '/workspace',
} as const;

/**
 * `call`: the agent calls a socket of the server; `relay`: it listens for a relay; `exec`: no agent, the engine starts every
 * program.
 */
export type ChannelKind = 'call' | 'relay' | 'exec';

/** Command that waits for ever where there is no agent; the engine's own init reaps. */
const WAIT = ['/bin/sh', '-c', 'while :; do sleep 3600; done'];

export interface ContainerPlan {
  readonly kind: Extract<Kind, 'sandbox' | 'warm' | 'trial'>;
  /** `null`: belongs to no owner and is removed at once. */
  readonly owner: string | null;
  readonly image: string;
  /** `uid:gid`, never root. */
  readonly user: string;
  readonly channel: ChannelKind;
  readonly door: string;
  /** Paths of the agent and the door on the engine's machine; only for `call`. */
  readonly binds: { readonly agent: string; readonly door: string } | null;
  readonly isolation: ProvisionSpec['recipe']['isolation'];
  /** Name of the engine's runtime; `null`: its default. */
  readonly runtime: string | null;
  readonly keep: boolean;
  readonly secrets: boolean;
  readonly readOnlyRoot: boolean;
  readonly openNetwork: boolean;
  readonly resources: ProvisionSpec['recipe']['resources'];
}

const MIB = 1_048_576;
const SCRATCH_MB = 256;

export interface LimitFields {
  readonly Memory?: number;
  readonly MemorySwap?: number;
  readonly NanoCpus?: number;
  readonly PidsLimit?: number;
}

/** Returns the requested limits; defaults are enough for any work and not enough for the whole machine. */
export function limitFields(
  { cpu, memory_mb, pids }: ContainerPlan['resources'],
  facts: EngineFacts,
  options: DockerOptions,
): LimitFields {
  const share = options.defaultMemoryShare ?? DEFAULTS.memoryShare;
  const memory = memory_mb === null ? Math.floor(facts.memoryBytes * share) : memory_mb * MIB;
  return {
    ...(facts.memory && memory > 0 ? { Memory: memory, MemorySwap: memory } : {}),
    ...(cpu === null ? {} : { NanoCpus: Math.max(10_000_000, Math.round(cpu * 1e9)) }),
    ...(facts.pids ? { PidsLimit: pids ?? options.defaultPids ?? DEFAULTS.pids } : {}),
  };
}

/** Returns file systems in memory, which are in no snapshot and on no disk. */
function memoryMounts(plan: ContainerPlan, { podman }: EngineFacts): Record<string, string> {
  const [uid, gid] = plan.user.split(':');
  // Podman cannot set an owner; there is but one user inside.
  const of = (mode: string) => (podman ? 'mode=0777' : `mode=${mode},uid=${uid},gid=${gid}`);
  const own = `nosuid,nodev,${of('0700')}`;
  const scratch = `nosuid,nodev,mode=1777,size=${SCRATCH_MB}m`;
  const disk = plan.resources.disk_mb ?? SCRATCH_MB;
  return {
    ...(plan.readOnlyRoot
      ? {
          '/tmp': scratch,
          '/var/tmp': scratch,
          '/run': 'nosuid,nodev,mode=0755,size=16m',
          [INSIDE.work]: `nosuid,nodev,exec,${of('0755')},size=${disk}m`,
        }
      : {}),
    '/run/secrets': `${own},noexec,size=4m`,
    ...(plan.channel === 'relay' ? { [INSIDE.run]: `${own},noexec,size=64k` } : {}),
  };
}

function bind(Source: string, Target: string): object {
  return { Type: 'bind', Source, Target, ReadOnly: true };
}

function agentCommand(channel: ChannelKind, openFiles: number | null): object {
  const door = channel === 'call' ? ['--call', INSIDE.socket] : ['--listen', INSIDE.relay];
  const limit = openFiles === null ? [] : ['--nofile', String(openFiles)];
  return { Entrypoint: [INSIDE.agent], Cmd: ['--init', ...door, '--cwd', INSIDE.work, ...limit] };
}

export function containerConfig(plan: ContainerPlan, facts: EngineFacts, options: DockerOptions): object {
  const { channel, binds, resources, isolation, runtime } = plan;
  const { open_files } = resources;
  const bare = channel === 'exec';
  return {
    Image: plan.image,
    User: plan.user,
    ...(bare ? { Entrypoint: WAIT, Cmd: [] } : agentCommand(channel, open_files)),
    WorkingDir: bare ? INSIDE.work : '/',
    Hostname: 'sandbox',
    Env: [`HOME=${INSIDE.work}`],
    Healthcheck: { Test: ['NONE'] },
    StopSignal: 'SIGKILL',
    Labels: {
      ...(plan.owner === null ? {} : { [LABEL.owner]: plan.owner }),
      [LABEL.kind]: plan.kind,
      [LABEL.door]: plan.door,
      [LABEL.channel]: channel,
      [LABEL.keep]: plan.keep ? 'yes' : 'no',
      [LABEL.isolation]: isolation,
      [LABEL.secrets]: plan.secrets ? 'yes' : 'no',
      [LABEL.snapshot]: '',
      [LABEL.prepared]: '',
    },
    HostConfig: {
      NetworkMode: plan.openNetwork ? (options.network ?? 'none') : 'none',
      IpcMode: 'private',
      CgroupnsMode: 'private',
      Privileged: false,
      CapDrop: ['ALL'],
      SecurityOpt: ['no-new-privileges:true'],
      ReadonlyRootfs: plan.readOnlyRoot,
      Init: bare,
      LogConfig: { Type: 'none' },
      RestartPolicy: { Name: 'no' },
      OomScoreAdj: 500,
      ShmSize: 64 * MIB,
      Tmpfs: memoryMounts(plan, facts),
      Mounts: binds === null ? [] : [bind(binds.agent, INSIDE.agent), bind(binds.door, INSIDE.door)],
      ...(runtime === null ? {} : { Runtime: runtime }),
      ...(resources.disk_mb === null || plan.readOnlyRoot
        ? {}
        : { StorageOpt: { size: `${resources.disk_mb}M` } }),
      ...(bare && open_files !== null
        ? { Ulimits: [{ Name: 'nofile', Soft: open_files, Hard: open_files }] }
        : {}),
      ...limitFields(resources, facts, options),
    },
  };
}
