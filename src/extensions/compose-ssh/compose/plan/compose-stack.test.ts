import { expect, it } from 'vitest';
import { parse } from 'yaml';
import { SandboxerError } from '../../../../contract/errors/errors.ts';
import type { ProjectRequest } from '../load/load-project.ts';
import { loadProject } from '../load/load-project.ts';
import { readStack } from '../model/read-stack.ts';
import { memoryTree } from '../tree/memory-tree.ts';
import type { Tree } from '../yaml/compose-yaml.ts';
import { Findings } from '../yaml/finding.ts';
import type { StackTerms } from './plan-stack.ts';
import { planStack } from './plan-stack.ts';

const RESOURCES = { cpu: null, memory_mb: null, disk_mb: null, pids: null, open_files: null, gpu: null };
const TERMS: StackTerms = {
  project: 'sbxtest',
  labels: { 'io.sandboxer.owner': 'me' },
  openNetwork: false,
  resources: RESOURCES,
  elevated: false,
  fromSeed: false,
  variables: {},
  secrets: [],
  directory: '/stack',
  secretDirectory: '/secrets',
  agent: '/agent',
  gatewayImage: 'gateway',
  subnets: ['10.99.0.0/28', '10.99.0.16/28', '10.99.0.32/28'],
  composeVersion: null,
  unheld: [],
};

type Files = Readonly<Record<string, string>> | string;

async function plan(files: Files, terms: Partial<StackTerms> = {}, request: Partial<ProjectRequest> = {}) {
  const tree = memoryTree(typeof files === 'string' ? { 'compose.yaml': files } : files);
  const all = { ...TERMS, ...terms };
  const findings = new Findings();
  const project = await loadProject(tree, { files: [], env: {}, profiles: [], ...request }, findings);
  const given = new Set(all.secrets.map(({ name }) => name));
  const model = readStack({ project, tree, findings, given });
  findings.settle(all.elevated);
  const made = planStack(model, tree, all, findings);
  findings.settle(all.elevated);
  return { ...made, emitted: parse(made.file) as Tree };
}

async function refused(files: Files, terms: Partial<StackTerms> = {}): Promise<SandboxerError> {
  const error = await plan(files, terms).then(
    () => null,
    (reason: unknown) => reason,
  );
  if (!(error instanceof SandboxerError))
    throw new Error(`It was accepted, or failed oddly: ${String(error)}`);
  expect(error.extras.creation).toBe('not_created');
  // The error has a remedy of its own, not only the one of its code.
  expect(error.extras.remedy ?? '').not.toBe('');
  return error;
}

function service({ emitted }: { emitted: Tree }, name: string): Tree {
  return (emitted.services as { [name: string]: Tree })[name] as Tree;
}

const BOUNDARY: Readonly<Record<string, string>> = {
  'privileged: true': 'privileged',
  'privileged: "yes"': 'privileged',
  'privileged: "${P:-true}"': 'privileged',
  'network_mode: host': 'network_mode',
  'network_mode: "container:other"': 'network_mode',
  'network_mode: bridge': 'network_mode',
  'pid: host': 'pid',
  'pid: "container:x"': 'pid',
  'ipc: host': 'ipc',
  'uts: host': 'uts',
  'userns_mode: host': 'userns_mode',
  'cgroup: host': 'cgroup',
  'cgroup_parent: /': 'cgroup_parent',
  'cap_add: [SYS_ADMIN]': 'cap_add',
  'cap_add: [CAP_net_admin]': 'cap_add',
  'cap_add: [ALL]': 'cap_add',
  'security_opt: ["seccomp:unconfined"]': 'security_opt',
  'security_opt: ["apparmor=unconfined"]': 'security_opt',
  'security_opt: ["no-new-privileges:false"]': 'security_opt',
  'devices: ["/dev/kmsg:/dev/kmsg"]': 'devices',
  'device_cgroup_rules: ["a *:* rwm"]': 'device_cgroup_rules',
  'gpus: all': 'gpus',
  'sysctls: {net.ipv4.ip_forward: 1}': 'sysctls',
  'runtime: other': 'runtime',
  'oom_score_adj: -1000': 'oom_score_adj',
  'oom_kill_disable: true': 'oom_kill_disable',
  'external_links: [other]': 'external_links',
  'logging: {driver: syslog, options: {syslog-address: "udp://192.0.2.1"}}': 'logging.driver',
  'volumes: ["/var/run/docker.sock:/var/run/docker.sock"]': 'volumes[0].source',
  'volumes: ["/:/host:ro"]': 'volumes[0].source',
  'volumes: ["~/.ssh:/ssh"]': 'volumes[0].source',
  'volumes: ["../../etc:/etc2"]': 'volumes[0].source',
  'volumes: ["./a/../../x:/x"]': 'volumes[0].source',
  'volumes: ["./link:/x"]': 'volumes[0].source',
  'volumes: ["./dir/chain/passwd:/x"]': 'volumes[0].source',
  'volumes: [{type: bind, source: /etc, target: /x}]': 'volumes[0].source',
  'volumes: [{type: bind, source: "${D:-/etc}", target: /x}]': 'volumes[0].source',
  'volumes: ["./dir:/x:rshared"]': 'volumes[0].bind.propagation',
  'volumes_from: ["container:x"]': 'volumes_from',
  'networks: {default: {ipv4_address: 172.20.0.5}}': 'networks.default.ipv4_address',
  'build: {context: ., network: host}': 'build.network',
  'build: {context: ., ssh: [default]}': 'build.ssh',
  'build: {context: ., secrets: [x]}': 'build.secrets',
  'build: {context: ., entitlements: [security.insecure]}': 'build.entitlements',
  'build: {context: ., privileged: true}': 'build.privileged',
  'build: {context: ., tags: ["postgres:16"]}': 'build.tags',
  'build: {context: ., additional_contexts: {x: /etc}}': 'build.additional_contexts',
  'build: ../..': 'build.context',
  'build: {context: ., dockerfile: ../../Dockerfile}': 'build.dockerfile',
  'build: "https://example.org/repo.git"': 'build.context',
  'deploy: {resources: {reservations: {devices: [{capabilities: [gpu]}]}}}':
    'deploy.resources.reservations.devices',
};

it.each(Object.entries(BOUNDARY))('%s is refused, unless elevated', async (line, field) => {
  const files = {
    'compose.yaml': `services:\n  web:\n    image: busybox\n    ${line}\n`,
    link: '-> /etc',
    'dir/file': 'x',
    'dir/chain': '-> ../link',
    Dockerfile: 'FROM scratch',
  };
  const error = await refused(files);
  expect(error.code).toBe('SBX_COMPOSE_REFUSED');
  expect(error.extras.field).toBe(`services.web.${field}`);
  expect(error.detail).toContain('web: ');
  await plan(files, { elevated: true });
});

it.each([
  ['networks: {n: {external: true}}', 'networks.n.external'],
  ['networks: {n: {driver: host}}', 'networks.n.driver'],
  ['networks: {n: {driver: macvlan, driver_opts: {parent: eth0}}}', 'networks.n.driver'],
  ['networks: {n: {ipam: {config: [{subnet: 10.0.0.0/8}]}}}', 'networks.n.ipam'],
  ['volumes: {v: {external: true}}', 'volumes.v.external'],
  ['volumes: {v: {driver: nfs}}', 'volumes.v.driver'],
  ['volumes: {v: {driver_opts: {type: none, o: bind, device: /etc}}}', 'volumes.v.driver_opts'],
])('%s is refused, unless elevated', async (line, field) => {
  const text = `services: {web: {image: busybox}}\n${line}\n`;
  expect((await refused(text)).extras.field).toBe(field);
  await plan(text, { elevated: true });
});

it.each([
  ['provider: {type: x}', 'provider'],
  ['use_api_socket: true', 'use_api_socket'],
  ['some_new_field: 1', 'some_new_field'],
  ['post_start: [{command: x, privileged: true}]', 'post_start'],
  ['labels: {io.sandboxer.owner: someone}', 'labels.io.sandboxer.owner'],
  ['labels: ["com.docker.compose.project=other"]', 'labels.com.docker.compose.project'],
  ['volumes: ["x:/.sandboxer/agent"]', 'volumes[0].target'],
  ['volumes: ["./a:relative"]', 'volumes[0]'],
  ['volumes: [{type: image, source: x, target: /x}]', 'volumes[0]'],
  ['depends_on: [nobody]', 'depends_on'],
  ['network_mode: "service:nobody"', 'network_mode'],
  ['image: sandboxer-sbxother-web', 'image'],
  ['env_file: /etc/passwd', 'env_file[0]'],
  ['env_file: ../x', 'env_file[0]'],
  ['env_file: [missing.env]', 'env_file[0]'],
  ['env_file: link', 'env_file[0]'],
  ['extends: {service: x, file: /etc/compose.yaml}', 'extends.file'],
  ['extends: {service: x, file: link}', 'extends.file'],
  ['extends: web', 'extends'],
  ['ports: ["1-65535"]', 'ports[0]'],
])('%s is not accepted, elevated or not', async (line, field) => {
  const files = {
    'compose.yaml': `services:\n  web:\n    image: busybox\n    ${line}\n`.replace(
      /image: busybox\n {4}(?=image)/,
      '',
    ),
    link: '-> /etc/passwd',
  };
  for (const elevated of [false, true]) {
    const error = await refused(files, { elevated });
    expect(error.code).toBe('SBX_COMPOSE_INVALID');
    expect(error.extras.field).toBe(`services.web.${field}`);
  }
});

it.each([
  ['nothing', ''],
  ['no services', 'services: {}'],
  ['a list', '- a'],
  [
    'a bomb',
    `a: &a [x,x,x,x,x,x,x,x,x,x]\n${'bcdefgh'
      .split('')
      .map((name, n) => `${name}: &${name} [${Array(10).fill(`*${'abcdefg'[n]}`).join(',')}]`)
      .join('\n')}\nservices: {web: {image: x, x-y: *h}}`,
  ],
  ['deep nesting', `services: ${'{a: '.repeat(200)}1${'}'.repeat(200)}`],
  [
    'a merge bomb',
    `x-a: &a {${Array.from({ length: 2000 }, (_, n) => `k${n}: 1`).join(', ')}}\nservices:\n${Array.from({ length: 90 }, (_, n) => `  s${n}: {image: x, labels: {<<: *a}}`).join('\n')}`,
  ],
  ['a tag', 'services: !!python/object/apply:os.system ["id"]'],
  ['a key twice', 'services: {web: {image: a, privileged: false, privileged: true}}'],
  ['a prototype', 'services: {__proto__: {image: x}, web: {image: x}}'],
  ['an unclosed variable', 'services: {web: {image: "${X"}}'],
  ['a required variable', 'services: {web: {image: "${X:?must be set}"}}'],
  ['variables without end', `services: {web: {image: "${'${A:-'.repeat(40)}${'}'.repeat(40)}"}}`],
  ['500 services', `services:\n${Array.from({ length: 500 }, (_, n) => `  s${n}: {image: x}`).join('\n')}`],
  ['the first format', 'web: {image: x}'],
  ['an include of the network', 'include: ["https://example.org/compose.yaml"]\nservices: {web: {image: x}}'],
  ['an include of itself', 'include: [compose.yaml]\nservices: {web: {image: x}}'],
  ['a service name', 'services: {"../web": {image: x}}'],
  ['all in profiles', 'services: {web: {image: x, profiles: [dev]}}'],
  ['binary rubbish', '\u0000\u0001\u0002'],
  ['a huge file', `#${'x'.repeat(1_100_000)}\nservices: {web: {image: x}}`],
])('%s is a typed error, soon', async (_what, text) => {
  const begun = Date.now();
  expect((await refused(text)).code).toBe('SBX_COMPOSE_INVALID');
  expect(Date.now() - begun).toBeLessThan(10_000);
});

it('a compose stack expands short values that become long only so far', async () => {
  const long = 'x'.repeat(60_000);
  const text = `services: {web: {image: x, command: [${Array(100).fill('"$L"').join(',')}]}}`;
  const error = await plan(text, {}, { env: { L: long } }).catch((reason: unknown) => reason);
  expect(error).toMatchObject({ code: 'SBX_COMPOSE_INVALID' });
});

it('a compose stack gets names, labels, limits, a closed network and the agent, and no other change', async () => {
  const made = await plan(
    `
services:
  web:
    image: "web:\${TAG:-1}"
    container_name: mine
    command: ["sh", "-c", "echo $$HOME"]
    ports: ["8080:80", "127.0.0.1:9000:9000/tcp"]
    environment: [A=1, B]
    depends_on: {db: {condition: service_healthy}}
    networks: [front]
  db: {image: db, volumes: ["data:/data"], deploy: {resources: {limits: {memory: 100M}}}}
networks: {front: {}}
volumes: {data: {name: shared-by-all}}
`,
    { resources: { ...RESOURCES, memory_mb: 300, pids: 100 } },
  );
  expect(service(made, 'web')).toEqual({
    image: 'web:1',
    command: ['sh', '-c', 'echo $$HOME'],
    environment: { A: '1' },
    depends_on: { db: { condition: 'service_healthy' } },
    labels: { 'io.sandboxer.owner': 'me', 'io.sandboxer.service': 'web' },
    security_opt: ['no-new-privileges:true'],
    volumes: [{ type: 'bind', source: '/agent', target: '/.sandboxer/agent', read_only: true }],
    mem_limit: 200 * 1_048_576,
    memswap_limit: 200 * 1_048_576,
    pids_limit: 50,
    container_name: 'sbxtest_web',
    dns: ['192.0.2.1'],
    networks: { front: { ipv4_address: '10.99.0.14' } },
  });
  expect(service(made, 'db').mem_limit).toBe(100 * 1_048_576);
  expect(made.emitted.networks).toMatchObject({
    front: { name: 'sbxtest_front', internal: true, ipam: { config: [{ subnet: '10.99.0.0/28' }] } },
    default: { name: 'sbxtest_default', internal: true },
  });
  expect(made.emitted.volumes).toEqual({
    data: { name: 'sbxtest_data', labels: { 'io.sandboxer.owner': 'me' } },
  });
  expect([...made.gatewayPorts.values()]).toEqual([
    { service: 'web', target: 80 },
    { service: 'web', target: 9000 },
  ]);
  expect(service(made, 'sandboxer-gateway')).toMatchObject({
    command: ['--forward', '20000=10.99.0.14:80', '--forward', '20001=10.99.0.14:9000'],
    networks: { front: {}, 'sandboxer-ingress': {} },
    ports: ['127.0.0.1::20000', '127.0.0.1::20001'],
    user: '65534:65534',
  });
  expect(made.portOwners.get(9000)).toBe('web');
});

it('a compose stack publishes on free ports of the loopback where the network is open', async () => {
  const made = await plan('services: {web: {image: x, ports: ["8080:80", "5000-5001"]}}', {
    openNetwork: true,
  });
  expect(service(made, 'web').ports).toEqual(['127.0.0.1::80', '127.0.0.1::5000', '127.0.0.1::5001']);
  expect(made.notes).toContain('web: port 80 is at a free port of the host instead of 8080.');
});

it('a compose stack that asks for more than the sandbox may have is refused', async () => {
  const text = 'services: {a: {image: x, mem_limit: 1g}, b: {image: x}}';
  const error = await refused(text, { resources: { ...RESOURCES, memory_mb: 512 } });
  expect(error.detail).toContain('1024 MiB of 512');
});

it('a source below a writable directory gets a place that no container can replace', async () => {
  const made = await plan({
    'compose.yaml': `
services:
  app: {image: x, volumes: [".:/app"]}
  web: {image: x, volumes: ["./conf/nginx.conf:/etc/nginx.conf:ro", "./new:/new"]}`,
    'conf/nginx.conf': 'x',
  });
  expect(made.copies).toEqual([
    { from: 'tree/conf/nginx.conf', to: 'binds/0', how: 'link' },
    { from: 'tree/new', to: 'binds/1', how: 'link' },
  ]);
  expect(made.directories).toEqual(['tree/new']);
  const sources = (name: string) =>
    (service(made, name).volumes as Tree[]).map(({ source, target }) => `${source} ${target}`);
  expect(sources('app').slice(0, 3)).toEqual([
    '/stack/tree /app',
    '/stack/binds/0 /app/conf/nginx.conf',
    '/stack/binds/1 /app/new',
  ]);
  expect(sources('web').slice(0, 2)).toEqual(['/stack/binds/0 /etc/nginx.conf', '/stack/binds/1 /new']);
});

it('a compose stack builds under a name of its own, without a network', async () => {
  const made = await plan({
    'compose.yaml': 'services: {web: {build: ./app, image: "postgres:16"}}',
    'app/Dockerfile': 'FROM x',
  });
  expect(service(made, 'web')).toMatchObject({
    image: 'sandboxer-sbxtest-web',
    build: { context: '/stack/tree/app', network: 'none' },
  });
  expect(made.builtImages).toEqual(['sandboxer-sbxtest-web']);
});

it('secrets go to the services that name them, or else to all services', async () => {
  const secrets = [
    { name: 'db_password', delivery: 'file' as const },
    { name: 'TOKEN', delivery: 'env' as const },
  ];
  const made = await plan(
    `
services:
  web: {image: x, environment: [TOKEN]}
  db: {image: x, secrets: [{source: db_password, target: pw}]}
secrets: {db_password: {external: true}}`,
    { secrets },
  );
  expect(service(made, 'web').environment).toEqual({ TOKEN: '${SBX_0}' });
  expect(service(made, 'db').environment).toBeUndefined();
  expect(service(made, 'db').volumes).toContainEqual({
    type: 'bind',
    source: '/secrets/db_password',
    target: '/run/secrets/pw',
    read_only: true,
  });
  expect(JSON.stringify(service(made, 'web'))).not.toContain('db_password');
  const everybody = await plan('services: {a: {image: x}, b: {image: x}}', { secrets });
  for (const name of ['a', 'b'])
    expect(JSON.stringify(service(everybody, name))).toContain('/run/secrets/db_password');
  await refused('services: {db: {image: x, secrets: [other]}}\nsecrets: {other: {external: true}}');
});
