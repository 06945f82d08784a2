/** Builds the OCI bundle of a sandbox: the whole configuration of the runtime, without any secret. */
import type { Mount } from '../../../contract/profiles/inputs.ts';
import { DOOR_SOCKET } from '../../shared/channel/agent-door.ts';

export interface BundleParts {
  readonly hostname: string;
  /** First host id, which is root inside, and the number of ids. */
  readonly range: { readonly first: number; readonly size: number } | null;
  /** The user namespace of the sandbox, where the runtime does not make one. */
  readonly users: string | null;
  readonly agentPath: string;
  readonly agentOptions: readonly string[];
  /** Directory of the socket that the agent calls, where it can inherit none. */
  readonly door: string | null;
  readonly environment: Readonly<Record<string, string>>;
  /** Limit of the agent itself; its programs may have less. */
  readonly openFiles: number;
  /** Whether there is a file system in memory for secrets: it is in no snapshot and on no disk. */
  readonly secretFiles: boolean;
  /** Places of the volumes on the host and inside. */
  readonly volumes: readonly { readonly source: string; readonly path: string; readonly readOnly: boolean }[];
  readonly noNewPrivs: boolean;
  readonly mounts: readonly Mount[];
  /** `null`: the sandbox has a kernel of its own. */
  readonly seccomp: { readonly bpf: string } | { readonly profile: object } | null;
}

/** Capabilities of root inside; the agent drops more as soon as the network is up. */
const CAPABILITIES = [
  'CAP_CHOWN',
  'CAP_DAC_OVERRIDE',
  'CAP_FOWNER',
  'CAP_FSETID',
  'CAP_KILL',
  'CAP_SETGID',
  'CAP_SETUID',
  'CAP_SETPCAP',
  'CAP_NET_BIND_SERVICE',
  'CAP_SYS_CHROOT',
  'CAP_AUDIT_WRITE',
  'CAP_SETFCAP',
];
const AGENT_ONLY = ['CAP_NET_ADMIN', 'CAP_NET_RAW'];

const MASKED = [
  ...['acpi', 'asound', 'kcore', 'keys', 'latency_stats', 'timer_list', 'timer_stats', 'sched_debug', 'scsi'],
  ...['interrupts', 'kallsyms', 'kmsg'],
].map((name) => `/proc/${name}`);
const MASKED_SYS = ['/sys/firmware', '/sys/devices/virtual/powercap'];
const READ_ONLY = ['bus', 'fs', 'irq', 'sys', 'sysrq-trigger'].map((name) => `/proc/${name}`);

/** The machine has 3,072 terminals for all sandboxes. */
const MOST_TERMINALS = 'max=128';
const AGENT_INSIDE = '/.init';
const DOOR_INSIDE = '/.door';

function mounts(parts: BundleParts): object[] {
  const { agentPath, secretFiles, range } = parts;
  const terminals = range === null ? [] : ['gid=5'];
  const owner = range === null ? [] : ['uid=1000', 'gid=1000'];
  return [
    { destination: '/proc', type: 'proc', source: 'proc', options: ['nosuid', 'noexec', 'nodev'] },
    {
      destination: '/dev',
      type: 'tmpfs',
      source: 'tmpfs',
      options: ['nosuid', 'strictatime', 'mode=755', 'size=1m'],
    },
    {
      destination: '/dev/pts',
      type: 'devpts',
      source: 'devpts',
      options: [
        'nosuid',
        'noexec',
        'newinstance',
        'ptmxmode=0666',
        'mode=0620',
        MOST_TERMINALS,
        ...terminals,
      ],
    },
    {
      destination: '/dev/shm',
      type: 'tmpfs',
      source: 'shm',
      options: ['nosuid', 'noexec', 'nodev', 'mode=1777', 'size=64m'],
    },
    { destination: '/sys', type: 'sysfs', source: 'sysfs', options: ['nosuid', 'noexec', 'nodev', 'ro'] },
    // Without the mounts below it, and with the host's ids: root inside has no rights there either.
    ...parts.mounts.map(({ source, target, access }) => ({
      destination: target,
      type: 'bind',
      source,
      options: ['bind', access, 'nosuid', 'nodev', 'private'],
    })),
    ...parts.volumes.map(({ source, path, readOnly }) => ({
      destination: path,
      source,
      type: 'bind',
      options: ['bind', readOnly ? 'ro' : 'rw', 'nosuid', 'nodev'],
    })),
    // After all mounts of the request, so that none of them can cover it.
    ...(secretFiles
      ? [
          {
            destination: '/run/secrets',
            type: 'tmpfs',
            source: 'secrets',
            options: ['nosuid', 'noexec', 'nodev', 'mode=755', 'size=4m', ...owner],
          },
        ]
      : []),
    ...(parts.door === null
      ? []
      : [
          {
            destination: DOOR_INSIDE,
            type: 'bind',
            source: parts.door,
            options: ['bind', 'ro', 'nosuid', 'nodev'],
          },
        ]),
    {
      destination: AGENT_INSIDE,
      type: 'bind',
      source: agentPath,
      options: ['bind', 'ro', 'nosuid', 'nodev'],
    },
  ];
}

export function bundleConfig(parts: BundleParts): object {
  const { range, seccomp, openFiles } = parts;
  const mapping = range === null ? undefined : [{ containerID: 0, hostID: range.first, size: range.size }];
  const call = parts.door === null ? [] : ['--call', `${DOOR_INSIDE}/${DOOR_SOCKET}`];
  const all = [...CAPABILITIES, ...AGENT_ONLY];
  const kinds = ['pid', 'network', 'ipc', 'uts', 'mount', 'cgroup', ...(range === null ? [] : ['user'])];
  return {
    ociVersion: '1.0.2',
    process: {
      terminal: false,
      user: { uid: 0, gid: 0 },
      args: [AGENT_INSIDE, '--init', ...call, ...parts.agentOptions],
      env: Object.entries(parts.environment).map(([name, value]) => `${name}=${value}`),
      cwd: '/',
      capabilities: { bounding: all, effective: all, permitted: all },
      rlimits: [
        { type: 'RLIMIT_CORE', hard: 0, soft: 0 },
        { type: 'RLIMIT_NOFILE', hard: openFiles, soft: Math.min(openFiles, 1024) },
      ],
      // A set-uid file of the host has no power here anyway: root inside is unprivileged outside.
      noNewPrivileges: parts.noNewPrivs,
    },
    root: { path: 'rootfs', readonly: false },
    hostname: parts.hostname,
    mounts: mounts(parts),
    annotations: {
      ...(seccomp !== null && 'bpf' in seccomp ? { 'run.oci.seccomp_bpf_data': seccomp.bpf } : {}),
      // With a single id the kernel forbids a change of groups.
      ...(range === null ? { 'run.oci.keep_original_groups': '1' } : {}),
    },
    linux: {
      namespaces: kinds.map((type) =>
        type === 'user' && parts.users !== null ? { type, path: parts.users } : { type },
      ),
      ...(mapping === undefined ? {} : { uidMappings: mapping, gidMappings: mapping }),
      resources: {},
      maskedPaths: [...MASKED, ...MASKED_SYS],
      readonlyPaths: READ_ONLY,
      ...(seccomp !== null && 'profile' in seccomp ? { seccomp: seccomp.profile } : {}),
    },
  };
}
