/**
 * Checks for tests which fields, sources, names and options an emitted file has: written a second time and independently of the
 * shapes that it was read by.
 */
import { posix } from 'node:path';
import type { Tree } from '../yaml/compose-yaml.ts';
import { parseComposeYaml } from '../yaml/compose-yaml.ts';
import type { StackPlan } from './plan-stack.ts';

const CONTROL = /[\p{C}\p{Zl}\p{Zp}]/u;
const FIELDS = new Set(
  'image build command entrypoint environment volumes ports networks network_mode depends_on labels security_opt container_name scale dns dns_opt dns_search cap_add cap_drop cpuset cpus cpu_shares mem_limit memswap_limit mem_reservation mem_swappiness pids_limit domainname hostname expose extra_hosts group_add healthcheck init ipc pid links logging mac_address oom_kill_disable oom_score_adj platform privileged pull_policy read_only restart shm_size stdin_open stop_grace_period stop_signal storage_opt tmpfs tty ulimits user volumes_from working_dir cgroup uts'.split(
    ' ',
  ),
);
const CAPABILITIES =
  /^(?:AUDIT_WRITE|CHOWN|DAC_OVERRIDE|FOWNER|FSETID|KILL|MKNOD|NET_BIND_SERVICE|NET_RAW|SETFCAP|SETGID|SETPCAP|SETUID|SYS_CHROOT)$/;
const WITHIN = /^service:(?:web|base|db)$/;
const TMPFS =
  /^(?:(?:size=\d+[kmg%]?|mode=[0-7]+|[ug]id=\d+|nr_inodes=\d+[kmg]?|ro|rw|(?:no)?exec|nosuid|nodev|noatime|relatime|nodiratime)(?:,|$))*$/i;
/** Text that only programs inside read. */
const FREE =
  /^services\.[^.]+\.(?:command|entrypoint|environment\.|healthcheck\.test|build\.(?:args\.|dockerfile_inline))/;

function faultsOfText(path: string, text: string): string[] {
  const faults: string[] = [];
  if (!text.isWellFormed() || text.includes('\0')) faults.push(`${path}: broken text`);
  if (!FREE.test(path) && CONTROL.test(text)) faults.push(`${path}: control characters`);
  if (/\$/.test(text.replaceAll('$$', '')) && !/^\$\{SBX_\d+\}$/.test(text))
    faults.push(`${path}: a variable`);
  return faults;
}

function walk(path: string, value: unknown): string[] {
  if (typeof value === 'string') return faultsOfText(path, value);
  if (Array.isArray(value)) return value.flatMap((item, n) => walk(`${path}[${n}]`, item));
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, item]) => [
    ...(CONTROL.test(key) || key.includes('$') ? [`${path}: the key ${JSON.stringify(key)}`] : []),
    ...walk(path === '' ? key : `${path}.${key}`, item),
  ]);
}

const resolved = (path: string) => path === posix.normalize(path) && !CONTROL.test(path);

function faultsOfMount(mount: Tree): string[] {
  const { type, source, target, ...rest } = mount;
  const faults: string[] = [];
  const agent = source === '/agent' && target === '/.sandboxer/agent' && rest.read_only === true;
  const where = String(target);
  if (!where.startsWith('/') || where === '/' || !resolved(where)) faults.push('its target');
  if (/^\/\.sandboxer(?:\/|$)/.test(where) && !agent) faults.push('a target of the agent');
  if (!Object.keys(rest).every((key) => ['read_only', 'volume', 'tmpfs'].includes(key)))
    faults.push('its keys');
  if (type === 'bind') {
    const place = String(source);
    const known =
      /^\/stack\/(?:tree(?:\/.+)?|binds\/\d+|grants\/\d+|texts\/\d+)$|^\/secrets\/[A-Za-z_][\w.-]*$/;
    if (!agent && !(known.test(place) && resolved(place))) faults.push(`its source ${place}`);
  } else if (type === 'volume') {
    if (source !== undefined && !/^\w[\w.-]*$/.test(String(source))) faults.push('its source');
  } else if (type !== 'tmpfs' || source !== undefined) faults.push('its type');
  return faults.map((fault) => `a mount: ${fault}`);
}

function faultsOfBuild(build: Tree): string[] {
  const faults: string[] = [];
  const known =
    /^(?:context|dockerfile|dockerfile_inline|args|extra_hosts|labels|network|no_cache|platforms|privileged|pull|shm_size|target)$/;
  for (const key of Object.keys(build)) if (!known.test(key)) faults.push(key);
  const context = String(build.context);
  if (!/^\/stack\/(?:tree(?:\/.+)?|builds\/\d+)$/.test(context) || !resolved(context)) faults.push('context');
  const dockerfile = String(build.dockerfile ?? 'Dockerfile');
  if (!resolved(dockerfile) || dockerfile.startsWith('..')) faults.push('dockerfile');
  if (dockerfile.startsWith('/') && !/^\/stack\/grants\/\d+$/.test(dockerfile)) faults.push('dockerfile');
  if (build.network !== 'none') faults.push('network');
  if (build.privileged === true) faults.push('privileged');
  return faults.map((fault) => `a build: ${fault}`);
}

function faultsOfService(name: string, service: Tree, project: string): string[] {
  const faults = Object.keys(service).filter((field) => !FIELDS.has(field));
  const list = (field: string) => (service[field] ?? []) as string[];
  if (service.privileged === true || service.oom_kill_disable === true) faults.push('privileges');
  if (Number(service.oom_score_adj ?? 0) < 0) faults.push('oom_score_adj');
  if (list('cap_add').some((one) => !CAPABILITIES.test(one))) faults.push('cap_add');
  if (list('security_opt').join() !== 'no-new-privileges:true') faults.push('security_opt');
  for (const space of ['pid', 'ipc', 'network_mode', 'cgroup', 'uts'])
    if (
      service[space] !== undefined &&
      !/^(?:private|shareable|none)$/.test(String(service[space])) &&
      !WITHIN.test(String(service[space]))
    )
      faults.push(space);
  for (const mount of (service.volumes ?? []) as Tree[]) faults.push(...faultsOfMount(mount));
  if (service.build !== undefined) faults.push(...faultsOfBuild(service.build as Tree));
  const { image } = service;
  const own = `sandboxer-${project}-${name.toLowerCase()}`;
  const gateway = name === 'sandboxer-gateway' && image === 'gateway';
  if (
    !gateway &&
    image !== own &&
    (/sandboxer-(?:sbx|snap|gate)|^(?:sha\d+|[0-9a-f]+)(?::[0-9a-f]+)?$/.test(String(image)) ||
      !/[:@]/.test(String(image)))
  )
    faults.push(`image ${String(image)}`);
  for (const label of Object.keys((service.labels ?? {}) as Tree))
    if (!/^(?:io\.sandboxer\.(?:owner|service)|org\.(?:opencontainers\.image|label-schema)\..+)$/.test(label))
      faults.push(`label ${label}`);
  for (const item of list('tmpfs')) {
    const [path = '', options = ''] = item.split(':');
    if (!path.startsWith('/') || !resolved(path) || !TMPFS.test(options)) faults.push(`tmpfs ${item}`);
  }
  for (const limit of Object.keys((service.ulimits ?? {}) as Tree))
    if (/^(?:nice|rt)/.test(limit)) faults.push(limit);
  for (const from of list('volumes_from'))
    if (!/^(?:web|base|db)(?::r[ow])?$/.test(from)) faults.push('volumes_from');
  return faults.map((fault) => `services.${name}: ${fault}`);
}

function faultsOfSections({ networks, volumes }: Tree, project: string): string[] {
  const faults: string[] = [];
  for (const [name, network] of Object.entries((networks ?? {}) as { [name: string]: Tree })) {
    const { driver, internal, ...rest } = network;
    const ingress = name === 'sandboxer-ingress';
    if (network.name !== `${project}_${name}` || driver !== 'bridge' || (internal !== true && !ingress))
      faults.push(`networks.${name}`);
    if (Object.keys(rest).some((key) => !['name', 'driver_opts', 'ipam', 'labels'].includes(key)))
      faults.push(`networks.${name}: keys`);
  }
  for (const [key, { name, driver_opts, labels: _, ...rest }] of Object.entries(
    (volumes ?? {}) as { [name: string]: Tree },
  )) {
    const { type, device, o = '', ...more } = (driver_opts ?? {}) as Tree;
    if (name !== `${project}_${key}` || Object.keys({ ...rest, ...more }).length > 0)
      faults.push(`volumes.${key}`);
    if (driver_opts !== undefined && (type !== 'tmpfs' || device !== 'tmpfs' || !TMPFS.test(String(o))))
      faults.push(`volumes.${key}: options`);
  }
  return faults;
}

/** Returns the faults of an emitted file and of the files made beside it. */
export function faultsOfPlan(plan: StackPlan, project: string): string[] {
  const file = parseComposeYaml(plan.file, 'stack.yml');
  const places = [...plan.directories, ...plan.copies.map(({ from }) => from)];
  const services = file.services as { [name: string]: Tree };
  return [
    ...Object.keys(file).filter((key) => !['version', 'services', 'networks', 'volumes'].includes(key)),
    ...walk('', file),
    ...Object.entries(services).flatMap(([name, service]) => faultsOfService(name, service, project)),
    ...faultsOfSections(file, project),
    ...places.filter((place) => !/^tree(?:\/.+)?$/.test(place) || !resolved(place)),
    ...plan.copies.map(({ to }) => to).filter((place) => !/^(?:binds|builds|grants)\/\d+$/.test(place)),
    ...[...plan.files.keys()].filter((place) => !/^texts\/\d+$/.test(place)),
    ...plan.notes.filter((note) => CONTROL.test(note)),
    ...plan.namedImages.filter((image) => CONTROL.test(image) || image.startsWith('-')),
  ];
}
