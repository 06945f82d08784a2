import type { Mount } from '../load/mount.ts';
import type { PortMapping } from '../load/port-mapping.ts';
import { BUILD, readBuild } from '../shapes/build-shape.ts';
import { deploy } from '../shapes/deploy-shape.ts';
import { imageName } from '../shapes/image-name.ts';
import { labels } from '../shapes/label-names.ts';
import { placeOf } from '../shapes/place.ts';
import { Reading } from '../shapes/reading.ts';
import { attachment } from '../shapes/section-shapes.ts';
import { DROPPED, PLAIN, REFUSED, TAKEN } from '../shapes/service-shape.ts';
import type { RecordOf, Shape } from '../shapes/shape.ts';
import { boundary, flag, list, map, numberIn, record, text } from '../shapes/shape.ts';
import * as words from '../shapes/words.ts';
import type { TreeView } from '../tree/tree-view.ts';
import type { Tree } from '../yaml/compose-yaml.ts';
import { isTree } from '../yaml/compose-yaml.ts';
import { listOf, numberOf, textOf } from '../yaml/scalars.ts';
import type { Grant, ServiceLimits, ServiceModel } from './stack-model.ts';

/** Directory where the agent is mounted. */
export const AGENT_DIRECTORY = '/.sandboxer';
const AGENT_REMEDY = 'Use another target.';

const IN_TREE = 'Use a path of the repository, or a named volume.';
const limit = (most: number, example: unknown) => numberIn(numberOf, 0, most, example);

const networkMode = boundary(
  text({
    what: 'a mode',
    pattern: /^(?:[A-Za-z0-9][\w.-]{0,127}|(?:service|container):[A-Za-z0-9][\w.-]{0,127})$/,
    examples: ['none', 'service:db'],
  }),
  (mode) =>
    mode === 'host'
      ? 'It would be in the network of the host.'
      : `${JSON.stringify(mode)} is a network outside of the stack.`,
  {
    harmless: (mode) => mode === 'none' || mode.startsWith('service:'),
    remedy: 'Remove it: services of a stack reach each other by name.',
  },
);

const serviceRule = { what: 'a name of a service', pattern: words.SERVICE_NAME, examples: ['db'] };

const dependencies = map(
  serviceRule,
  record({
    condition: text({
      what: 'a condition',
      pattern: /^service_(?:started|healthy|completed_successfully)$/,
      examples: ['service_healthy'],
    }),
    required: flag,
    restart: flag,
  }),
);

const volumesFrom = boundary(
  list(
    text({
      what: 'a service',
      pattern: /^(?:container:)?[A-Za-z0-9][\w.-]{0,127}(?::(?:ro|rw))?$/,
      examples: ['db:ro'],
    }),
  ),
  'It names a container outside of the stack.',
  { harmless: (all) => all.every((one) => !one.startsWith('container:')), remedy: 'Use a named volume.' },
);

const grant = record({
  source: words.sectionName,
  target: text({ ...words.LINE, examples: ['app.conf', '/etc/app.conf'] }),
  uid: words.userName,
  gid: words.userName,
  mode: words.line,
});

/** Fields with another form in the model than in the file. */
const MODELLED = {
  cpu_period: limit(1e9, 100_000),
  cpu_quota: limit(1e12, 50_000),
  cpu_shares: words.integer(0, 262_144, 512),
  cpus: limit(10_000, '1.5'),
  depends_on: dependencies,
  deploy,
  dns: list(words.address),
  environment: words.variables,
  image: imageName,
  labels,
  links: list(words.serviceLink),
  mem_limit: words.bytes,
  mem_reservation: words.bytes,
  memswap_limit: text({
    what: 'a size',
    pattern: /^(?:-1|\d{1,15}(?:\.\d{1,6})?\s*[kmgtKMGT]?i?[bB]?)$/,
    examples: ['1g'],
  }),
  network_mode: networkMode,
  networks: map(
    { what: 'a name of a network', pattern: words.SECTION_NAME, examples: ['default'] },
    attachment,
  ),
  pids_limit: words.integer(-1, 2 ** 22, 100),
  scale: words.integer(0, 1000, 2),
  volumes_from: volumesFrom,
} satisfies { readonly [field: string]: Shape<unknown> };

/** Fields read before services are merged, with examples of their forms; the rest of them is judged below. */
const PREPARED: { readonly [field: string]: readonly unknown[] } = {
  build: [
    '.',
    ...['context', 'dockerfile'].map((field) => ({
      context: '.',
      dockerfile: 'Dockerfile',
      [field]: field === 'context' ? 'dir' : 'Dockerfile',
    })),
    ...record(BUILD).examples.map((fields) => ({ context: '.', ...(fields as Tree) })),
  ],
  configs: ['settings', { source: 'settings', target: '/etc/settings', mode: '0440' }],
  env_file: ['app.env', { path: 'app.env', required: false }],
  extends: [{ service: 'base', file: 'other.yml' }, 'base'],
  ports: ['127.0.0.1:8080:80/tcp', { target: 80, published: '8080', protocol: 'tcp', name: 'web' }],
  secrets: ['token', { source: 'token', target: 'renamed', uid: '1000' }],
  volumes: [
    './dir:/data:ro',
    'data:/data:nocopy',
    { type: 'bind', source: './dir', target: '/data', bind: { propagation: 'rprivate' } },
    { type: 'volume', source: 'data', target: '/data', volume: { nocopy: true } },
    { type: 'tmpfs', target: '/data', tmpfs: { size: '64m' } },
  ],
};
const ALL = { ...PLAIN, ...TAKEN, ...DROPPED, ...REFUSED, ...MODELLED };

/** Every field of a service, with examples of its values. */
export const SERVICE_FIELDS: { readonly [field: string]: readonly unknown[] } = {
  ...Object.fromEntries(Object.entries(ALL).map(([field, { examples }]) => [field, examples])),
  ...PREPARED,
};

function readFields<F extends { readonly [field: string]: Shape<unknown> }>(
  fields: F,
  raw: Tree,
  at: Reading,
): RecordOf<F> {
  const own = Object.entries(raw).filter(([key]) => Object.hasOwn(fields, key));
  return record(fields).read(Object.fromEntries(own), at) ?? {};
}

function checkTarget(target: string, at: Reading): void {
  if (target === AGENT_DIRECTORY || target.startsWith(`${AGENT_DIRECTORY}/`))
    at.below('target').invalid(`${AGENT_DIRECTORY} is where the agent lives.`, AGENT_REMEDY);
}

function readMounts(raw: readonly Mount[], tree: TreeView, at: Reading): Mount[] {
  return raw.map((mount, n) => {
    const below = new Reading(at.findings, at.service, `volumes[${n}]`);
    checkTarget(mount.target, below);
    if (mount.type !== 'bind') return mount;
    if (mount.propagation !== null && !/^r?private$/.test(mount.propagation))
      below.below('bind.propagation').boundary('Mounts made inside would appear on the host.');
    return { ...mount, source: placeOf(mount.source, tree, below.below('source'), IN_TREE) };
  });
}

/** Returns the path that a secret or config is mounted at: `name` below its usual directory, or an absolute one. */
function grantTarget(directory: string, name: string): string | null {
  if (name.startsWith('/')) return words.insidePath(name);
  const path = words.insidePath(`${directory}/${name}`);
  return path?.startsWith(`${directory}/`) ? path : null;
}

function readGrants(raw: unknown, kind: 'secrets' | 'configs', at: Reading): Grant[] {
  return listOf(raw).flatMap((item) => {
    const below = at.below(kind);
    const { source, target = source, uid, gid, mode } = grant.read(item, below) ?? {};
    if (source === undefined || target === undefined) return [];
    for (const [field, given] of Object.entries({ uid, gid, mode }))
      if (given !== undefined) below.below(field).leaveOut();
    const path = grantTarget(kind === 'secrets' ? '/run/secrets' : '', target);
    if (path === null) {
      below.invalid(`${JSON.stringify(target)} leads out of its directory.`, 'Write a path without "..".');
      return [];
    }
    checkTarget(path, below);
    return [{ source, target: path }];
  });
}

function readImage(raw: Tree, image: string | undefined, at: Reading): string | null {
  if (textOf(raw.image) === null && raw.build === undefined)
    at.below('image').invalid('There is neither an image nor a build.', 'Name an image.');
  return image ?? null;
}

type Modelled = RecordOf<typeof MODELLED>;

function declaredLimits({
  cpus,
  cpu_quota,
  cpu_period = 100_000,
  mem_limit,
  pids_limit,
  deploy,
}: Modelled): ServiceLimits {
  const limits = deploy?.resources?.limits ?? {};
  const positive = (...values: (number | undefined)[]) =>
    values.find((value) => value !== undefined && value > 0) ?? null;
  const quota =
    cpu_quota === undefined || cpu_period === 0
      ? undefined
      : Math.floor((cpu_quota / cpu_period) * 100) / 100;
  return {
    cpus: positive(cpus, limits.cpus, quota),
    memoryBytes: positive(mem_limit, limits.memory),
    pids: positive(pids_limit, limits.pids),
  };
}

/** Returns a normalised and merged service as its model; its faults become findings. */
export function readService(name: string, raw: Tree, tree: TreeView, at: Reading): ServiceModel {
  for (const [field, value] of Object.entries(raw)) {
    if (Object.hasOwn(SERVICE_FIELDS, field) || value === undefined) continue;
    at.below(field).invalid('It is not understood, so it cannot be judged.', 'Remove it.');
  }
  readFields(DROPPED, raw, at);
  readFields(REFUSED, raw, at);
  const environment = isTree(raw.environment) ? raw.environment : {};
  const modelled = readFields(MODELLED, raw, at);
  const { deploy, depends_on = {}, networks = {} } = modelled;
  return {
    name,
    image: readImage(raw, modelled.image, at),
    build: readBuild(raw.build, tree, at.below('build')),
    fields: readFields(PLAIN, raw, at),
    taken: readFields(TAKEN, raw, at),
    environment: modelled.environment ?? {},
    unvalued: Object.keys(environment).filter((key) => environment[key] === null),
    labels: modelled.labels ?? {},
    mounts: readMounts(listOf(raw.volumes) as Mount[], tree, at),
    volumesFrom: modelled.volumes_from ?? [],
    ports: listOf(raw.ports) as PortMapping[],
    networks: new Map(Object.entries(networks)),
    networkMode: modelled.network_mode ?? null,
    dependsOn: new Map(
      Object.entries(depends_on).map(([other, { condition = 'service_started' }]) => [other, condition]),
    ),
    links: modelled.links ?? [],
    dns: modelled.dns ?? [],
    secrets: readGrants(raw.secrets, 'secrets', at),
    configs: readGrants(raw.configs, 'configs', at),
    declared: declaredLimits(modelled),
    cpuShares: modelled.cpu_shares ?? null,
    reservedMemoryBytes: modelled.mem_reservation ?? deploy?.resources?.reservations?.memory ?? null,
    replicas: Math.trunc(modelled.scale ?? deploy?.replicas ?? 1),
  };
}
