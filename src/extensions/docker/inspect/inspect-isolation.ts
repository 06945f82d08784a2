/**
 * Reports the restrictions in force for one container: read inside it, where the kernel shows them, and from the engine where
 * that decides.
 */
import { readlinkSync } from 'node:fs';
import type { IsolationFacts } from '../../../contract/extensions/isolation.ts';
import type { SandboxFiles, SandboxSession } from '../../../core/ports/session.ts';
import { capabilityNames } from '../../shared/isolation/capability-names.ts';
import { kernelInside, textFrom } from '../../shared/isolation/text-from.ts';
import type { EngineFacts } from '../engine/engine-facts.ts';
import type { Container } from '../engine/engine-replies.ts';

const KINDS = ['user', 'mnt', 'pid', 'net', 'ipc', 'uts', 'cgroup'] as const;
const SECCOMP_MODES = ['none', 'strict', 'filter'] as const;
const MOST_BYTES = 262_144;
/** The value that control groups of version 1 have for "no limit". */
const ENDLESS = 2 ** 62;

export interface Inside {
  readonly session: SandboxSession;
  readonly files: SandboxFiles;
  readonly container: Container;
  readonly facts: EngineFacts;
  readonly level: IsolationFacts['level'];
  /** Whether the engine's kernel is this machine's. */
  readonly local: boolean;
}

/** Returns the limits of a program: the agent has its own. Where the image has no `cat`, those of the agent. */
async function programLimits({ session, files }: Inside): Promise<string> {
  const none = { env: {}, cwd: null, user: null, terminal: null, stdin: false, background: false };
  const process = await session.spawn({ ...none, argv: ['cat', '/proc/self/limits'], timeoutSeconds: 10 });
  let text = '';
  for await (const chunk of process.output)
    if (chunk.stream === 'stdout' && text.length < MOST_BYTES) text += Buffer.from(chunk.data).toString();
  const { code } = await process.exit;
  return code === 0 ? text : await textFrom(files, '/proc/self/limits');
}

function mapping(text: string): IsolationFacts['uid_map'] {
  return text
    .trim()
    .split('\n')
    .filter(Boolean)
    .map((row) => {
      const [inside = 0, outside = 0, count = 0] = row.trim().split(/\s+/).map(Number);
      return { inside, outside, count };
    });
}

function numberIn(text: string): number | null {
  const value = Number(text.trim().split(/\s+/)[0]);
  return text.trim() !== '' && Number.isFinite(value) && value >= 0 && value < ENDLESS ? value : null;
}

/** Returns the hard limit from `/proc/<pid>/limits`. */
function processLimit(limits: string, name: string): number | null {
  return numberIn(new RegExp(`^${name}\\s+\\S+\\s+(\\d+)`, 'm').exec(limits)?.[1] ?? '');
}

async function limitsOf(inside: Inside): Promise<IsolationFacts['limits']> {
  const { files, container } = inside;
  const at = (path: string) => textFrom(files, `/sys/fs/cgroup/${path}`);
  const unified = (await at('cgroup.controllers')) !== '';
  const [memory, swap, pids, cpu, limits] = await Promise.all([
    at(unified ? 'memory.max' : 'memory/memory.limit_in_bytes'),
    at(unified ? 'memory.swap.max' : 'memory/memory.memsw.limit_in_bytes'),
    at(unified ? 'pids.max' : 'pids/pids.max'),
    unified
      ? at('cpu.max')
      : Promise.all([at('cpu/cpu.cfs_quota_us'), at('cpu/cpu.cfs_period_us')]).then((both) => both.join(' ')),
    programLimits(inside),
  ]);
  const [quota = 0, period = 0] = cpu.trim().split(/\s+/).map(Number);
  return {
    version: unified ? 'v2' : memory === '' && pids === '' ? 'none' : 'v1',
    memory_bytes: numberIn(memory),
    swap_bytes: numberIn(swap),
    pids: numberIn(pids),
    cpu_millis: quota > 0 && period > 0 ? Math.round((quota / period) * 1000) : null,
    open_files: processLimit(limits, 'Max open files'),
    core_bytes: processLimit(limits, 'Max core file size'),
    frozen: container.State.Paused,
  };
}

function ownNamespace(kind: string): string | null {
  try {
    return readlinkSync(`/proc/self/ns/${kind}`);
  } catch {
    return null;
  }
}

/** On another machine all but a shared user namespace are known to be its own: the extension never requests a shared one. */
async function namespacesOf({ files, facts, local }: Inside): Promise<IsolationFacts['namespaces']> {
  const found = await Promise.all(
    KINDS.map(async (kind) => {
      const target = await files.stat(`/proc/self/ns/${kind}`).then(
        ({ link_target }) => link_target,
        () => null,
      );
      const id = /\[(\d+)\]/.exec(target ?? '')?.[1];
      if (id === undefined) return [];
      const elsewhere = kind !== 'user' || facts.userNamespaces || facts.rootless;
      return [{ kind, id, own: local ? target !== ownNamespace(kind) : elsewhere }];
    }),
  );
  return found.flat();
}

function rootIn(mountinfo: string): IsolationFacts['root'] {
  for (const line of mountinfo.split('\n')) {
    const [before = '', after = ''] = line.split(' - ');
    const [, , , , point, options = ''] = before.split(' ');
    if (point === '/')
      return { type: after.split(' ')[0] ?? 'unknown', read_only: options.split(',').includes('ro') };
  }
  return null;
}

/** Returns sentences that are true of the facts beside them, whatever the profile requested. */
function notEnforced(facts: Omit<IsolationFacts, 'not_enforced'>): string[] {
  const found: [boolean, string][] = [
    [facts.uid_map.some(({ outside }) => outside === 0), 'Ids inside are ids of the engine’s machine.'],
    [facts.seccomp.mode !== 'filter', 'No filter of system calls is on its first process.'],
    [!facts.no_new_privs, 'no_new_privs is off.'],
    [facts.limits.memory_bytes === null, 'Its memory is not limited.'],
    [facts.limits.pids === null, 'The number of its processes is not limited.'],
    [facts.limits.cpu_millis === null, 'Its share of the processors is not limited.'],
    [facts.root?.read_only !== true, 'Its root file system can be written to.'],
    [facts.level === 'container', 'It shares the kernel with the engine’s machine.'],
    [
      facts.level === 'gvisor',
      'gVisor does not tell who listens on a socket: a program of the same user inside can pass for the agent.',
    ],
  ];
  return found.filter(([applies]) => applies).map(([, text]) => text);
}

export async function isolationFacts(inside: Inside): Promise<IsolationFacts> {
  const { files, container, facts, level } = inside;
  const read = (path: string) => textFrom(files, path);
  const [status, uids, gids, label, kernel, mounts, net, lsm] = await Promise.all([
    read('/proc/self/status'),
    read('/proc/self/uid_map'),
    read('/proc/self/gid_map'),
    read('/proc/self/attr/current'),
    kernelInside(files),
    read('/proc/self/mountinfo'),
    read('/proc/self/net/dev'),
    read('/sys/kernel/security/lsm'),
  ]);
  const field = (name: string) => new RegExp(`^${name}:\\s*(\\S+)`, 'm').exec(status)?.[1];
  const filters = field('Seccomp_filters');
  const profile = label.replace(/[\0\n]+$/, '');
  const told = {
    level,
    runtime: {
      name: container.HostConfig?.Runtime || 'runc',
      version: `${facts.podman ? 'Podman' : 'Docker'} ${facts.version}`,
    },
    kernel,
    namespaces: await namespacesOf(inside),
    uid_map: mapping(uids),
    gid_map: mapping(gids),
    seccomp: {
      mode: SECCOMP_MODES[Number(field('Seccomp') ?? 0)] ?? 'none',
      filters: filters === undefined ? null : Number(filters),
    },
    no_new_privs: field('NoNewPrivs') === '1',
    capabilities: {
      bounding: capabilityNames(field('CapBnd') ?? '0'),
      effective: capabilityNames(field('CapEff') ?? '0'),
    },
    lsm: { active: lsm.trim().split(',').filter(Boolean), label: profile === '' ? null : profile },
    limits: await limitsOf(inside),
    network: {
      interfaces: net
        .split('\n')
        .slice(2)
        .map((row) => row.split(':')[0]?.trim() ?? '')
        .filter(Boolean),
    },
    root: rootIn(mounts),
  };
  return { ...told, not_enforced: notEnforced(told) };
}
