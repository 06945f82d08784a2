/**
 * Every field of a service and what becomes of it. A field that is not here is refused: a compose that is newer than
 * this table may give it any meaning.
 */
import { isTree } from './compose-yaml.ts';
import { isTruthy, listOf, numberOf, textOf } from './scalars.ts';

/** What is wrong with a value, and what to do instead; `null`: it may pass. */
export interface Objection {
  readonly detail: string;
  readonly remedy: string;
}

type Rule = (value: unknown) => Objection | null;

/** Read and written by the plan. */
const PLANNED = [
  'image',
  'build',
  'environment',
  'volumes',
  'ports',
  'networks',
  'network_mode',
  'depends_on',
  'secrets',
  'configs',
  'container_name',
  'deploy',
  'scale',
  'mem_limit',
  'memswap_limit',
  'cpus',
  'pids_limit',
  'labels',
  'profiles',
  'volumes_from',
  'dns',
  'ulimits',
] as const;

/** Concern nobody but the service itself. */
const PLAIN = [
  'annotations',
  'cap_drop',
  'command',
  'cpu_count',
  'cpu_percent',
  'cpu_period',
  'cpu_quota',
  'cpu_rt_period',
  'cpu_rt_runtime',
  'cpu_shares',
  'cpuset',
  'dns_opt',
  'dns_search',
  'domainname',
  'entrypoint',
  'expose',
  'extra_hosts',
  'group_add',
  'healthcheck',
  'hostname',
  'init',
  'links',
  'mac_address',
  'mem_reservation',
  'mem_swappiness',
  'platform',
  'pull_policy',
  'read_only',
  'restart',
  'shm_size',
  'stdin_open',
  'stop_grace_period',
  'stop_signal',
  'storage_opt',
  'tmpfs',
  'tty',
  'user',
  'working_dir',
] as const;

/** Mean something to a person at a terminal only: left out. */
const IDLE = ['attach', 'develop', 'blkio_config'] as const;

/** What the engine gives to every container anyway: asking for it adds nothing. */
const DEFAULT_CAPABILITIES = new Set([
  'AUDIT_WRITE',
  'CHOWN',
  'DAC_OVERRIDE',
  'FOWNER',
  'FSETID',
  'KILL',
  'MKNOD',
  'NET_BIND_SERVICE',
  'NET_RAW',
  'SETFCAP',
  'SETGID',
  'SETPCAP',
  'SETUID',
  'SYS_CHROOT',
]);

const refuse = (detail: string, remedy = 'Remove it.'): Objection => ({ detail, remedy });

/** Of the service’s own, or of another service of the stack. */
function namespaceRule(...allowed: string[]): Rule {
  return (value) => {
    const text = textOf(value) ?? '';
    if (allowed.includes(text) || /^service:[\w.-]+$/.test(text)) return null;
    return refuse(
      `${JSON.stringify(text)} is a namespace outside of the stack.`,
      'Remove it, or use "service:NAME".',
    );
  };
}

const always =
  (detail: string, remedy?: string): Rule =>
  () =>
    refuse(detail, remedy);

const RULES: Readonly<Record<string, Rule>> = {
  privileged: (value) =>
    isTruthy(value)
      ? refuse(
          'It would have all rights on the host.',
          'Remove it, or add the one capability that is needed.',
        )
      : null,
  pid: namespaceRule(),
  ipc: namespaceRule('private', 'shareable', 'none'),
  uts: namespaceRule(),
  userns_mode: always('It would leave the user namespace of the engine.'),
  cgroup: namespaceRule('private'),
  cgroup_parent: always('It would leave the limits of the sandbox.'),
  cap_add: (value) => {
    const beyond = listOf(value)
      .map((name) => String(name).toUpperCase().replace(/^CAP_/, ''))
      .filter((name) => !DEFAULT_CAPABILITIES.has(name));
    return beyond.length === 0
      ? null
      : refuse(`${beyond.join(', ')} is beyond what a container has by default.`);
  },
  security_opt: (value) => {
    const odd = listOf(value).find((item) => !/^no-new-privileges(?:[:=]true)?$/.test(String(item)));
    return odd === undefined ? null : refuse(`${String(odd)} would take a protection away.`);
  },
  devices: always('It would reach a device of the host.'),
  device_cgroup_rules: always('It would reach devices of the host.'),
  gpus: always('It would reach devices of the host.', 'Use a profile with resources.gpu.'),
  sysctls: always('It would change how the kernel works.', 'Remove it, or set it in the image.'),
  runtime: (value) =>
    textOf(value) === 'runc' ? null : refuse('The runtime is the boundary: it is not the stack’s to choose.'),
  isolation: (value) =>
    textOf(value) === 'default' ? null : refuse('The isolation is not the stack’s to choose.'),
  oom_kill_disable: (value) => (isTruthy(value) ? refuse('It would hold the host’s memory.') : null),
  oom_score_adj: (value) =>
    (numberOf(value) ?? -1) >= 0
      ? null
      : refuse('It would let others on the host be killed first.', 'Use 0 or more.'),
  logging: (value) => {
    const driver = isTree(value) ? (textOf(value.driver) ?? 'json-file') : '';
    return ['json-file', 'local', 'none'].includes(driver)
      ? null
      : refuse(`The log driver ${driver} sends from the host.`, 'Use json-file, local or none.');
  },
  external_links: always(
    'It would reach a container outside of the stack.',
    'Put the other container into the stack.',
  ),
  credential_spec: always('It is read from the host.'),
};

/** Whatever is asked, elevated or not. */
const NEVER: Readonly<Record<string, Objection>> = {
  provider: refuse('It runs a program on the host instead of a container.'),
  use_api_socket: refuse('It would hand over the engine’s own socket.'),
  post_start: refuse('Hooks are not understood by every compose.', 'Use "command" or setup.run.'),
  pre_stop: refuse('Hooks are not understood by every compose.', 'Use stop_signal.'),
  models: refuse('Models are not part of a sandbox.'),
  label_file: refuse('Labels cannot be read from a file.', 'Write them below "labels".'),
};

const QUIET = new Set<string>([...PLANNED, ...PLAIN]);
const LEFT_OUT = new Set<string>(IDLE);
const PLANNED_FIELDS = new Set<string>(PLANNED);

export type FieldVerdict =
  | { readonly verdict: 'plain' | 'planned' | 'left-out' }
  | ({ readonly verdict: 'boundary' | 'invalid' } & Objection);

export function judgeField(field: string, value: unknown): FieldVerdict {
  if (LEFT_OUT.has(field)) return { verdict: 'left-out' };
  if (QUIET.has(field)) return { verdict: PLANNED_FIELDS.has(field) ? 'planned' : 'plain' };
  const never = NEVER[field];
  if (never !== undefined) return { verdict: 'invalid', ...never };
  const rule = RULES[field];
  if (rule === undefined) {
    return { verdict: 'invalid', ...refuse('It is not understood, so it cannot be judged.', 'Remove it.') };
  }
  const objection = rule(value);
  return objection === null ? { verdict: 'plain' } : { verdict: 'boundary', ...objection };
}
