/** Reports the restrictions that the kernel enforces for a sandbox: read from its first process and its control groups. */
import { readFileSync, readlinkSync, statfsSync } from 'node:fs';
import { release } from 'node:os';
import { join } from 'node:path';
import type { IsolationFacts } from '../../../contract/extensions/isolation.ts';
import { capabilityNames } from '../../shared/isolation/capability-names.ts';
import type { Fields } from '../engine/spawner-client.ts';
import type { HostFacts } from '../host/host-facts.ts';
import type { SandboxRecord } from '../state/record.ts';
import { weightsOf } from './group-weights.ts';

const KINDS = ['user', 'mnt', 'pid', 'net', 'ipc', 'uts', 'cgroup', 'time'] as const;
const SECCOMP_MODES = ['none', 'strict', 'filter'] as const;
/** The value that v1 has for "no limit": the largest number of whole pages. */
const ENDLESS = 2 ** 62;

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

function statusOf(pid: string): Map<string, string> {
  const lines = read(`/proc/${pid}/status`).split('\n');
  return new Map(lines.map((line) => line.split(':\t', 2) as [string, string]));
}

function mappingOf(pid: string, file: 'uid_map' | 'gid_map'): IsolationFacts['uid_map'] {
  const rows = read(`/proc/${pid}/${file}`).trim().split('\n').filter(Boolean);
  return rows.map((row) => {
    const [inside = 0, outside = 0, count = 0] = row.trim().split(/\s+/).map(Number);
    return { inside, outside, count };
  });
}

function ownNamespace(kind: string): string | null {
  try {
    return /\[(\d+)\]/.exec(readlinkSync(`/proc/self/ns/${kind}`))?.[1] ?? null;
  } catch {
    return null;
  }
}

/** Reads a limit; returns `null` for "max", or without a file. */
function limitIn(directory: string | undefined, file: string): number | null {
  if (directory === undefined) return null;
  const text = read(join(directory, file)).trim();
  if (text === '' || text === 'max') return null;
  const value = Number(text.split(' ')[0]);
  return Number.isFinite(value) && value >= 0 && value < ENDLESS ? value : null;
}

function cpuOf(fields: Fields): number | null {
  const unified = fields.group_unified;
  const [quota, period] = unified
    ? read(join(unified, 'cpu.max')).trim().split(' ').map(Number)
    : [limitIn(fields.group_cpu, 'cpu.cfs_quota_us'), limitIn(fields.group_cpu, 'cpu.cfs_period_us')];
  return quota && period ? Math.round((quota / period) * 1000) : null;
}

function processLimit(pid: string, name: string): number | null {
  const value = new RegExp(`^${name}\\s+\\S+\\s+(\\S+)`, 'm').exec(read(`/proc/${pid}/limits`))?.[1];
  return value === undefined || value === 'unlimited' ? null : Number(value);
}

/** Returns the limit of programs: the agent itself may open more, and has the programs' limit as an argument. */
function openFilesOf(pid: string): number | null {
  const own = processLimit(pid, 'Max open files');
  const words = read(`/proc/${pid}/cmdline`).split('\0');
  const at = words.indexOf('--nofile');
  const told = at < 0 ? Number.NaN : Number(words[at + 1]);
  if (!(told > 0)) return own;
  return own === null ? told : Math.min(own, told);
}

/** Returns the size of the file system that the sandbox writes to; the requested size where it cannot be read. */
function diskOf(pid: string, { diskMb, roomBytes }: Inspected): number | null {
  if (diskMb === null) return roomBytes;
  try {
    const { blocks, bsize } = statfsSync(`/proc/${pid}/root`);
    return blocks * bsize;
  } catch {
    return diskMb * 1_048_576;
  }
}

/** Returns the limit of processes without the spawner's own process in the group, if there is one. */
function processesOf(fields: Fields): number | null {
  const most = limitIn(fields.group_unified ?? fields.group_pids, 'pids.max');
  return most === null ? null : most - Number(fields.kept ?? 0);
}

function limitsOf(pid: string, inspected: Inspected): IsolationFacts['limits'] {
  const { fields } = inspected;
  const unified = fields.group_unified;
  const v1 = fields.group_memory ?? fields.group_pids ?? fields.group_cpu ?? fields.group_freezer;
  return {
    version: unified !== undefined ? 'v2' : v1 !== undefined ? 'v1' : 'none',
    memory_bytes: unified
      ? limitIn(unified, 'memory.max')
      : limitIn(fields.group_memory, 'memory.limit_in_bytes'),
    swap_bytes: unified
      ? limitIn(unified, 'memory.swap.max')
      : limitIn(fields.group_memory, 'memory.memsw.limit_in_bytes'),
    pids: processesOf(fields),
    cpu_millis: cpuOf(fields),
    open_files: openFilesOf(pid),
    disk_bytes: diskOf(pid, inspected),
    core_bytes: processLimit(pid, 'Max core file size'),
    frozen: fields.frozen === '1',
  };
}

function rootOf(pid: string): IsolationFacts['root'] {
  for (const line of read(`/proc/${pid}/mountinfo`).split('\n')) {
    const [before = '', after = ''] = line.split(' - ');
    const [, , , , point, options = ''] = before.split(' ');
    if (point !== '/') continue;
    return { type: after.split(' ')[0] ?? 'unknown', read_only: options.split(',').includes('ro') };
  }
  return null;
}

function interfacesOf(pid: string): string[] {
  const rows = read(`/proc/${pid}/net/dev`).split('\n').slice(2);
  return rows.map((row) => row.split(':')[0]?.trim() ?? '').filter(Boolean);
}

/** Returns sentences that are true of the facts beside them, whatever the profile requested. */
function notEnforced(
  facts: Omit<IsolationFacts, 'not_enforced'>,
  { fields, roomBytes }: Inspected,
): string[] {
  const weighs = weightsOf(fields);
  const outside = facts.namespaces.filter(({ own }) => !own).map(({ kind }) => kind);
  const shared = outside.filter((kind) => kind !== 'time');
  const mapped = facts.uid_map.reduce((sum, { count }) => sum + count, 0);
  const found: [boolean, string][] = [
    [shared.length > 0, `It shares the ${shared.join(', ')} namespace of the server.`],
    [facts.uid_map.some(({ outside: id }) => id === 0), 'An id inside is root outside.'],
    [mapped === 1 && facts.level === 'container', 'It has one user, who is the user of the server outside.'],
    [
      facts.level !== 'container',
      'These facts are of the process that is its kernel; what runs inside shows none of its own to this machine.',
    ],
    [facts.seccomp.mode !== 'filter', 'No filter of system calls is on its first process.'],
    [!facts.no_new_privs, 'no_new_privs is off: sudo works inside, as the root of the sandbox only.'],
    [facts.limits.memory_bytes === null, 'Its memory is not limited.'],
    [facts.limits.pids === null, 'The number of its processes is not limited.'],
    [facts.limits.cpu_millis === null, 'Its share of the processors is not limited.'],
    [facts.limits.disk_bytes === null, 'What it writes to its disk is not limited.'],
    [
      roomBytes !== null,
      'What it writes to its disk is counted, not held back: it is ended when it has more than it may.',
    ],
    [
      !weighs.cpu,
      'It competes with the server for the processors: what runs inside can slow the server down.',
    ],
    [!weighs.io, 'It competes with the server for the disk, whose scheduler knows no weights (bfq does).'],
    [
      facts.lsm.label === null || facts.lsm.label === 'unconfined',
      'No profile of a security module (AppArmor, SELinux) is on it.',
    ],
    [facts.level === 'container', 'It shares the kernel with the host.'],
  ];
  return found.filter(([applies]) => applies).map(([, text]) => text);
}

export interface Inspected {
  readonly level: IsolationFacts['level'];
  readonly runtime: IsolationFacts['runtime'];
  /** The spawner's answer. */
  readonly fields: Fields;
  /** The size of a disk of its own. */
  readonly diskMb: number | null;
  /** Bytes that it may write to the machine's disk, where it has none of its own. */
  readonly roomBytes: number | null;
}

/** Returns the subject of an inspection, from the record, the facts of the machine and the answer of the spawner. */
export function inspectedOf(
  { isolation, limits }: SandboxRecord,
  { runtime, levels }: HostFacts,
  fields: Fields,
): Inspected {
  const higher = levels.offered.get(isolation);
  return {
    level: isolation,
    runtime: {
      name: higher?.name ?? runtime?.kind ?? 'none',
      version: higher?.version ?? runtime?.version ?? '',
    },
    fields,
    diskMb: limits.diskMb,
    roomBytes: limits.roomBytes,
  };
}

export function isolationFacts(inspected: Inspected): IsolationFacts {
  const { level, runtime, fields } = inspected;
  const pid = fields.pid ?? '0';
  const status = statusOf(pid);
  const filters = status.get('Seccomp_filters');
  const label = read(`/proc/${pid}/attr/current`).replace(/[\0\n]+$/, '');
  const facts = {
    level,
    runtime,
    kernel: release(),
    namespaces: KINDS.flatMap((kind) => {
      const id = fields[`ns_${kind}`];
      return id === undefined ? [] : [{ kind, id, own: id !== ownNamespace(kind) }];
    }),
    uid_map: mappingOf(pid, 'uid_map'),
    gid_map: mappingOf(pid, 'gid_map'),
    seccomp: {
      mode: SECCOMP_MODES[Number(status.get('Seccomp') ?? 0)] ?? 'none',
      filters: filters === undefined ? null : Number(filters),
    },
    no_new_privs: status.get('NoNewPrivs') === '1',
    capabilities: {
      bounding: capabilityNames(status.get('CapBnd') ?? '0'),
      effective: capabilityNames(status.get('CapEff') ?? '0'),
    },
    lsm: {
      active: read('/sys/kernel/security/lsm').trim().split(',').filter(Boolean),
      label: label === '' ? null : label,
    },
    limits: limitsOf(pid, inspected),
    network: { interfaces: interfacesOf(pid) },
    root: rootOf(pid),
  };
  return { ...facts, not_enforced: notEnforced(facts, inspected) };
}
