/**
 * The fields of a service that are emitted as they were read. A field that is in no shape is refused: a compose that is
 * newer than these shapes may give it any meaning.
 */
import { isTree } from '../yaml/compose-yaml.ts';
import type { RecordOf, Shape } from './shape.ts';
import { boundary, choice, either, flag, ignored, list, map, never, record, silent, text } from './shape.ts';
import { tmpfsMount } from './tmpfs-options.ts';
import * as words from './words.ts';

/** A command line, or a list of its words; compose splits the former. */
const program = either(Array.isArray, list(words.freeText), words.freeText);

const healthTest: Shape<string | string[]> = {
  read(value, at) {
    const read = program.read(value, at);
    if (!Array.isArray(read) || ['NONE', 'CMD', 'CMD-SHELL'].includes(read[0] ?? '')) return read;
    return at.invalid('Its first word is not understood.', 'Begin it with CMD, CMD-SHELL or NONE.');
  },
  examples: [['CMD-SHELL', 'true'], 'true'],
};

const healthcheck = record({
  test: healthTest,
  interval: words.duration,
  timeout: words.duration,
  start_period: words.duration,
  start_interval: words.duration,
  retries: words.integer(0, 1_000_000, 3),
  disable: flag,
});

/** Capabilities that the engine gives to every container: a request for them adds nothing. */
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

const capabilities: Shape<string[]> = {
  read: (value, at) =>
    list(words.capability)
      .read(value, at)
      ?.map((name) => name.toUpperCase().replace(/^CAP_/, '')),
  examples: [['NET_RAW']],
};

const beyondDefault = (all: readonly string[]) => all.filter((name) => !DEFAULT_CAPABILITIES.has(name));

const SERVICE_SPACE = 'service:[a-zA-Z0-9][a-zA-Z0-9._-]{0,62}';

/** Namespace of the service, or of another service of the stack. */
function namespace(...own: string[]): Shape<string> {
  const harmless = new RegExp(`^(?:${[...own, SERVICE_SPACE].join('|')})$`);
  return boundary(
    text({
      what: 'a namespace',
      pattern: new RegExp(
        `^(?:host|private|shareable|none|bridge|container:[\\w.-]{1,128}|${SERVICE_SPACE}|[A-Za-z0-9][\\w.-]{0,127})$`,
      ),
      examples: [...own, 'service:db'],
    }),
    (value) => `${JSON.stringify(value)} is a namespace outside of the stack.`,
    { harmless: (value) => harmless.test(value), remedy: 'Remove it, or use "service:NAME".' },
  );
}

const securityOption = text({
  what: 'an option',
  pattern: /^[a-z-]{2,40}(?:[:=][\w./:-]{0,1024})?$/,
  examples: ['no-new-privileges:true'],
});

const devicePath = text({
  what: 'a device',
  pattern: /^\/[\w./-]{1,255}(?::\/[\w./-]{1,255}(?::[rwm]{1,3})?)?$/,
  examples: ['/dev/fuse:/dev/fuse:rw'],
});

const device: Shape<string> = {
  read(value, at) {
    if (!isTree(value)) return devicePath.read(value, at);
    const { source, target = source, permissions = 'rwm' } = value;
    return devicePath.read(`${String(source)}:${String(target)}:${String(permissions)}`, at);
  },
  examples: [...devicePath.examples, { source: '/dev/fuse' }],
};

const logSize = text({ what: 'a size or number', pattern: /^[\w.-]{1,32}$/, examples: ['10m'] });
/** Options of logs on the host’s disk. Other drivers and options send from the host, or name files that others read. */
const LOG_OPTIONS: { readonly [name: string]: Shape<string> } = {
  'max-size': logSize,
  'max-file': logSize,
  'max-buffer-size': logSize,
  compress: logSize,
  mode: logSize,
};

const logOptions: Shape<{ [name: string]: string }> = {
  read(value, at) {
    const all =
      map({ what: 'an option', pattern: /^[a-z-]{1,64}$/, examples: [] }, words.line).read(value, at) ?? {};
    const kept: { [name: string]: string } = {};
    for (const [name, option] of Object.entries(all)) {
      const known = Object.hasOwn(LOG_OPTIONS, name) ? LOG_OPTIONS[name] : undefined;
      if (/^(?:tag|labels|labels-regex|env|env-regex)$/.test(name)) {
        at.below(name).leaveOut();
        continue;
      }
      if (known === undefined) at.boundary(`The option ${name} is not of a local log.`);
      const read = (known ?? words.line).read(option, at.below(name));
      if (read !== undefined) kept[name] = read;
    }
    return kept;
  },
  examples: Object.keys(LOG_OPTIONS).map((name) => ({ [name]: '10m' })),
};

const logging = record({
  driver: boundary(words.name, (driver) => `The log driver ${driver} sends from the host.`, {
    harmless: (driver) => ['json-file', 'local', 'none'].includes(driver),
    remedy: 'Use json-file, local or none.',
  }),
  options: logOptions,
});

const rise = words.integer(-1, 2 ** 53 - 1, 65_535);
const limitParts = record({ soft: rise, hard: rise });
/** Pair of limits: compose 1.29 takes both or none. */
const limitPair: Shape<{ soft: number; hard: number }> = {
  read(value, at) {
    const { soft, hard = soft } = limitParts.read(value, at) ?? {};
    if (hard !== undefined) return { soft: soft ?? hard, hard };
    return at.invalid('It names no limit.', 'Write a number, or "soft" and "hard".');
  },
  examples: limitParts.examples,
};
const limit = either(isTree, limitPair, rise);
const limitName = {
  what: 'a limit',
  pattern:
    /^(?:core|cpu|data|fsize|locks|memlock|msgqueue|nofile|nproc|rss|sigpending|stack|nice|rtprio|rttime)$/,
  examples: ['nofile', 'memlock'],
};

const ulimits = boundary(
  map(limitName, limit),
  'It would let the service take the processors of the host first.',
  {
    harmless: (limits) =>
      limits.nice === undefined && limits.rtprio === undefined && limits.rttime === undefined,
  },
);

const storage = record({ size: words.bytes });

/** Fields that are emitted as they were read. */
export const PLAIN = {
  cap_add: boundary(
    capabilities,
    (all) => `${beyondDefault(all).join(', ')} is beyond what a container has by default.`,
    { harmless: (all) => beyondDefault(all).length === 0 },
  ),
  cap_drop: capabilities,
  cgroup: namespace('private'),
  command: program,
  cpuset: words.cpuSet,
  device_cgroup_rules: boundary(
    list(
      text({
        what: 'a rule',
        pattern: /^[abc] (?:\d{1,8}|\*):(?:\d{1,8}|\*) [rwm]{1,3}$/,
        examples: ['c 10:229 rwm'],
      }),
    ),
    'It would reach devices of the host.',
  ),
  devices: boundary(list(device), 'It would reach a device of the host.'),
  dns_opt: list(words.resolverOption),
  dns_search: list(words.searchDomain),
  domainname: words.hostName,
  entrypoint: program,
  expose: list(words.exposedPort),
  external_links: boundary(list(words.serviceLink), 'It would reach a container outside of the stack.', {
    remedy: 'Put the other container into the stack.',
  }),
  extra_hosts: map(words.hostNameRule, words.hostAddress),
  gpus: boundary(
    text({ what: 'a number of devices', pattern: /^(?:all|\d{1,3})$/, examples: ['all'] }),
    'It would reach devices of the host.',
    {
      remedy: 'Use a profile with resources.gpu.',
    },
  ),
  group_add: list(words.groupName),
  healthcheck,
  hostname: words.hostName,
  init: flag,
  ipc: namespace('private', 'shareable', 'none'),
  logging,
  mac_address: words.macAddress,
  mem_swappiness: words.integer(0, 100, 60),
  oom_kill_disable: boundary(flag, 'It would hold the host’s memory.', { harmless: (on) => !on }),
  oom_score_adj: boundary(
    words.integer(-1000, 1000, 100),
    'It would let others on the host be killed first.',
    {
      harmless: (score) => score >= 0,
      remedy: 'Use 0 or more.',
    },
  ),
  pid: namespace(),
  platform: words.platform,
  privileged: boundary(flag, 'It would have all rights on the host.', {
    harmless: (on) => !on,
    remedy: 'Remove it, or add the one capability that is needed.',
  }),
  pull_policy: choice('always', 'never', 'missing', 'if_not_present', 'build'),
  read_only: flag,
  restart: words.restartPolicy,
  shm_size: words.bytes,
  stdin_open: flag,
  stop_grace_period: words.duration,
  stop_signal: words.signal,
  storage_opt: storage,
  sysctls: boundary(
    map({ what: 'a setting', pattern: /^[a-z0-9_.-]{1,128}$/, examples: ['net.core.somaxconn'] }, words.line),
    'It would change how the kernel works.',
    { remedy: 'Remove it, or set it in the image.' },
  ),
  tmpfs: list(tmpfsMount),
  tty: flag,
  ulimits,
  user: words.userName,
  userns_mode: boundary(words.name, 'It would leave the user namespace of the engine.'),
  uts: namespace(),
  working_dir: words.workingDirectory,
} satisfies { readonly [field: string]: Shape<unknown> };

/** Fields that are read, but not emitted as they are: the plan decides their form, if any. */
export const TAKEN = {
  annotations: boundary(
    map({ what: 'a name', pattern: /^[\w./-]{1,253}$/, examples: ['org.example.note'] }, words.line),
    'Runtimes take annotations for settings of the boundary itself.',
  ),
  cgroup_parent: boundary(words.line, 'It would leave the limits of the sandbox.'),
  isolation: boundary(choice('default', 'process', 'hyperv'), 'The isolation is not the stack’s to choose.', {
    harmless: (value) => value === 'default',
  }),
  runtime: boundary(words.name, 'The runtime is the boundary: it is not the stack’s to choose.', {
    harmless: (value) => value === 'runc',
  }),
  security_opt: boundary(
    list(securityOption),
    (all) =>
      `${all.filter((one) => !/^no-new-privileges(?:[:=]true)?$/.test(one)).join(', ')} would take a protection away.`,
    { harmless: (all) => all.every((one) => /^no-new-privileges(?:[:=]true)?$/.test(one)) },
  ),
} satisfies { readonly [field: string]: Shape<unknown> };

/** Fields that are left out, with a note or replaced by the backend's own value. */
export const DROPPED = {
  attach: ignored(true),
  blkio_config: ignored({ weight: 300 }),
  container_name: ignored('mine'),
  cpu_count: ignored(2),
  cpu_percent: ignored(50),
  cpu_rt_period: ignored('1400us'),
  cpu_rt_runtime: ignored('400us'),
  develop: ignored({ watch: [] }),
  profiles: silent(['dev']),
};

export const REFUSED = {
  credential_spec: never('It is read from the host.'),
  label_file: never('Labels cannot be read from a file.', 'Write them below "labels".'),
  models: never('Models are not part of a sandbox.'),
  post_start: never('Hooks are not understood by every compose.', 'Use "command" or setup.run.'),
  pre_stop: never('Hooks are not understood by every compose.', 'Use stop_signal.'),
  provider: never('It runs a program on the host instead of a container.'),
  use_api_socket: never('It would hand over the engine’s own socket.'),
};

export type PlainFields = RecordOf<typeof PLAIN>;
export type TakenFields = RecordOf<typeof TAKEN>;
