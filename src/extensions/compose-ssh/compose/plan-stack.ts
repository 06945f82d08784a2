/**
 * Turns a judged project into the two files that are run: what the user’s files say, resolved, and the override that is
 * ours. Nothing else is given to compose, so that what was judged is what runs.
 */
import type { Resources } from '../../../contract/profile.ts';
import { fromTheTop } from '../subnets.ts';
import { bindPlaces } from './bind-places.ts';
import type { Tree } from './compose-yaml.ts';
import { isTree, writeComposeYaml } from './compose-yaml.ts';
import type { Findings } from './finding.ts';
import { IMAGE_PREFIX } from './judge-boundary.ts';
import type { Project } from './load-project.ts';
import type { PortMapping } from './port-mapping.ts';
import { isTruthy, listOf, numberOf, textOf } from './scalars.ts';
import { judgeField } from './service-fields.ts';
import { ServiceMounts, wantsSecret } from './service-mounts.ts';
import type { ServiceLimits } from './share-limits.ts';
import { replicasOf, shareLimits } from './share-limits.ts';
import type { PathRef } from './tree-path.ts';
import type { TreeView } from './tree-view.ts';
import { realInTree } from './tree-view.ts';

export interface StackTerms {
  readonly project: string;
  /** The stamp, on everything the engine makes. */
  readonly labels: Readonly<Record<string, string>>;
  readonly openNetwork: boolean;
  readonly resources: Resources;
  readonly elevated: boolean;
  /** Plain text for every service, where it has no value of its own. */
  readonly variables: Readonly<Record<string, string>>;
  readonly secrets: readonly { readonly name: string; readonly delivery: 'file' | 'env' }[];
  /** On the host. */
  readonly directory: string;
  readonly secretDirectory: string;
  readonly agent: string;
  readonly gatewayImage: string;
  /** Images are there under our names, and volumes are filled by us alone. */
  readonly fromSeed: boolean;
  /** One for each network, in order; more than there are is fine. */
  readonly subnets: readonly string[];
}

export interface StackPlan {
  readonly base: string;
  readonly override: string;
  readonly services: readonly string[];
  /** Small files of ours that services mount: path from the stack’s directory → content. */
  readonly files: ReadonlyMap<string, string>;
  readonly directories: readonly string[];
  readonly copies: readonly { readonly from: string; readonly to: string }[];
  /** Port of the gateway → the service and its port behind it. Empty where the engine itself publishes. */
  readonly gatewayPorts: ReadonlyMap<number, { readonly service: string; readonly target: number }>;
  /** Which service a port belongs to. */
  readonly portOwners: ReadonlyMap<number, string>;
  readonly builtImages: readonly string[];
  /** Those that the host has, or pulls. */
  readonly namedImages: readonly string[];
  readonly networkCount: number;
  readonly notes: readonly string[];
}

/** Nobody answers there (RFC 5737): names of the outside are not looked up by the engine on the stack’s behalf. */
const NO_RESOLVER = '192.0.2.1';
export const GATEWAY = 'sandboxer-gateway';
const INGRESS = 'sandboxer-ingress';
const GATEWAY_FIRST_PORT = 20_000;
const BASE_HEADING = 'What the compose files of the repository say, resolved by sand-boxer.';
const OVERRIDE_HEADING = 'What sand-boxer adds: names, labels, limits, networks, ports, mounts.';

class Planner {
  readonly #project: Project;
  readonly #tree: TreeView;
  readonly #terms: StackTerms;
  readonly #notes: string[] = [];
  readonly #places: ReturnType<typeof bindPlaces>;
  readonly #mounts: ServiceMounts;
  readonly #limits: ReadonlyMap<string, ServiceLimits>;
  readonly #usedNetworks = new Set<string>();
  readonly #builtImages: string[] = [];
  readonly #namedImages = new Set<string>();
  readonly #published: { service: string; target: number }[] = [];

  constructor(project: Project, tree: TreeView, terms: StackTerms, findings: Findings) {
    this.#project = project;
    this.#tree = tree;
    this.#terms = terms;
    this.#places = bindPlaces(project.services.values(), tree);
    this.#mounts = new ServiceMounts(project, tree, terms, this.#places);
    this.#limits = shareLimits(project.services, terms.resources, findings);
    for (const name of project.unset) this.#notes.push(`The variable ${name} is not set: it is empty.`);
  }

  plan(): StackPlan {
    const base: Tree = {};
    const override: Tree = {};
    for (const [name, service] of this.#project.services) {
      base[name] = this.#base(name, service);
      override[name] = this.#override(name, service);
    }
    const gateway = this.#terms.openNetwork ? null : this.#gateway(override);
    if (gateway !== null) override[GATEWAY] = gateway.service;
    const networks = { ...this.#networks(), ...gateway?.networks };
    const volumes = this.#volumes();
    return {
      base: writeComposeYaml({ version: '3.8', services: base }, BASE_HEADING),
      override: writeComposeYaml({ version: '3.8', services: override, networks, volumes }, OVERRIDE_HEADING),
      services: [...this.#project.services.keys()],
      files: this.#mounts.files,
      directories: this.#places.missing,
      copies: this.#places.copies,
      gatewayPorts: gateway?.ports ?? new Map(),
      portOwners: this.#portOwners(),
      builtImages: this.#builtImages,
      namedImages: [...this.#namedImages],
      networkCount: Object.keys(networks).length,
      notes: this.#notes,
    };
  }

  /** What the user said, minus what we say instead. */
  #base(name: string, service: Tree): Tree {
    const base: Tree = {};
    for (const [field, value] of Object.entries(service)) {
      const { verdict } = judgeField(field, value);
      if (verdict === 'plain' || verdict === 'boundary') base[field] = value;
    }
    const image = textOf(service.image);
    const { fromSeed } = this.#terms;
    if (fromSeed || isTree(service.build)) {
      base.image = `${IMAGE_PREFIX}${this.#terms.project}-${name.toLowerCase()}`;
      this.#builtImages.push(base.image as string);
      if (!fromSeed && isTree(service.build)) base.build = this.#build(service.build);
    } else if (image !== null) {
      base.image = image;
      this.#namedImages.add(image);
    }
    if (isTree(service.depends_on))
      base.depends_on = dependencies(service.depends_on, this.#project.services);
    if (service.volumes_from !== undefined) base.volumes_from = service.volumes_from;
    if (isTree(service.labels)) base.labels = service.labels;
    if (isTree(service.environment)) base.environment = withValues(service.environment);
    if (service.ulimits !== undefined) base.ulimits = service.ulimits;
    if (service.network_mode !== undefined) base.network_mode = service.network_mode;
    if (this.#terms.openNetwork && service.dns !== undefined) base.dns = service.dns;
    return base;
  }

  #build(build: Tree): Tree {
    const { context, ...rest } = build;
    const place = context as PathRef;
    const source = 'inside' in place ? realInTree(this.#tree, place.inside) : null;
    const path =
      source === null
        ? 'outside' in place
          ? place.outside
          : place.inside
        : `${this.#terms.directory}/tree/${source}`;
    if (this.#terms.openNetwork) return { ...rest, context: path };
    this.#notes.push('Images are built without a network, as the sandbox has none.');
    return { ...rest, context: path, network: 'none' };
  }

  #override(name: string, service: Tree): Tree {
    const { labels, variables, secrets, openNetwork, resources } = this.#terms;
    const count = replicasOf(service);
    const own = isTree(service.environment) ? service.environment : {};
    const environment: Tree = {};
    for (const [key, value] of Object.entries(variables))
      if (own[key] === undefined || own[key] === null) environment[key] = value;
    for (const secret of secrets)
      if (secret.delivery === 'env' && wantsSecret(this.#project, name, secret.name, 'environment'))
        environment[secret.name] = null;
    const override: Tree = {
      labels: { ...labels, 'io.sandboxer.service': name },
      security_opt: ['no-new-privileges:true'],
      volumes: this.#mounts.of(name, service),
      ...this.#limitFields(name),
      ...(Object.keys(environment).length > 0 ? { environment } : {}),
      ...(count === 1 ? { container_name: `${this.#terms.project}_${name}` } : { scale: count }),
      ...(openNetwork ? {} : { dns: [NO_RESOLVER] }),
      ...(resources.open_files === null
        ? {}
        : { ulimits: { nofile: { soft: resources.open_files, hard: resources.open_files } } }),
    };
    const ports = this.#ports(name, service);
    if (ports.length > 0) override.ports = ports;
    if (service.network_mode === undefined) override.networks = this.#serviceNetworks(service);
    return override;
  }

  #limitFields(name: string): Tree {
    const { cpus, memoryBytes, pids } = this.#limits.get(name) ?? {
      cpus: null,
      memoryBytes: null,
      pids: null,
    };
    return {
      ...(cpus === null ? {} : { cpus }),
      ...(memoryBytes === null ? {} : { mem_limit: memoryBytes, memswap_limit: memoryBytes }),
      ...(pids === null ? {} : { pids_limit: pids }),
    };
  }

  #ports(name: string, service: Tree): string[] {
    const tcp = new Set<number>();
    for (const { target, protocol, published } of listOf(service.ports) as PortMapping[]) {
      if (protocol === 'udp') this.#notes.push(`${name}: the udp port ${target} is not published.`);
      else tcp.add(target);
      if (published !== null && /^(?:.*:)?\d+$/.test(published))
        this.#notes.push(`${name}: port ${target} is at a free port of the host instead of ${published}.`);
    }
    const targets = [...tcp];
    for (const target of targets) this.#published.push({ service: name, target });
    return this.#terms.openNetwork ? targets.map((target) => `127.0.0.1::${target}`) : [];
  }

  #serviceNetworks(service: Tree): Tree {
    const wanted =
      isTree(service.networks) && Object.keys(service.networks).length > 0
        ? service.networks
        : { default: {} };
    for (const network of Object.keys(wanted)) this.#usedNetworks.add(network);
    return wanted;
  }

  /**
   * A stack without a network has no ports on the host either. So one container of ours, that runs nothing but the agent,
   * stands in its networks and in one more, and hands connections on to the ports that services publish.
   */
  #gateway(override: Tree) {
    const ports = new Map<number, { service: string; target: number }>();
    const forwards: string[] = [];
    const joined: Tree = {};
    const networkOrder = [...this.#usedNetworks];
    const addresses = new Map<string, string>();
    for (const { service, target } of this.#published) {
      const [, owner = service] =
        /^service:(.+)$/.exec(textOf(this.#project.services.get(service)?.network_mode) ?? '') ?? [];
      const tree = override[owner] as Tree;
      const [network] = Object.keys(isTree(tree.networks) ? tree.networks : {});
      if (network === undefined || tree.scale !== undefined) {
        this.#notes.push(`${service}: port ${target} is not published: it has no one address.`);
        continue;
      }
      const subnet = this.#terms.subnets[networkOrder.indexOf(network)];
      const taken = [...addresses.keys()].filter((key) => key.endsWith(`\n${network}`)).length;
      const key = `${owner}\n${network}`;
      const address = addresses.get(key) ?? (subnet === undefined ? '0.0.0.0' : fromTheTop(subnet, taken));
      addresses.set(key, address);
      const options = (tree.networks as Tree)[network];
      tree.networks = {
        ...(tree.networks as Tree),
        [network]: { ...(isTree(options) ? options : {}), ipv4_address: address },
      };
      joined[network] = {};
      const port = GATEWAY_FIRST_PORT + ports.size;
      ports.set(port, { service, target });
      forwards.push('--forward', `${port}=${address}:${target}`);
    }
    if (ports.size === 0) return null;
    const { project, labels, gatewayImage, subnets } = this.#terms;
    const subnet = subnets[networkOrder.length];
    const service: Tree = {
      image: gatewayImage,
      command: forwards,
      container_name: `${project}_${GATEWAY}`,
      labels: { ...labels, 'io.sandboxer.service': GATEWAY },
      user: '65534:65534',
      cap_drop: ['ALL'],
      security_opt: ['no-new-privileges:true'],
      read_only: true,
      restart: 'unless-stopped',
      mem_limit: 128 * 1_048_576,
      pids_limit: 300,
      ports: [...ports.keys()].map((port) => `127.0.0.1::${port}`),
      networks: { ...joined, [INGRESS]: {} },
    };
    const ingress = {
      name: `${project}_${INGRESS}`,
      driver: 'bridge',
      driver_opts: { 'com.docker.network.bridge.enable_ip_masquerade': 'false' },
      ...(subnet === undefined ? {} : { ipam: { config: [{ subnet }] } }),
      labels: { ...labels },
    };
    return { service, ports, networks: { [INGRESS]: ingress } };
  }

  #networks(): Tree {
    const { project, labels, openNetwork, elevated, subnets } = this.#terms;
    return Object.fromEntries(
      [...this.#usedNetworks].map((key, n) => {
        const own = isTree(this.#project.networks[key]) ? this.#project.networks[key] : {};
        const subnet = subnets[n];
        if (elevated && isTruthy(own.external))
          return [key, { external: true, name: textOf(own.name) ?? key }];
        const chosen =
          elevated && isTree(own.ipam) ? own.ipam : subnet === undefined ? null : { config: [{ subnet }] };
        const ours = openNetwork
          ? { internal: isTruthy(own.internal) }
          : { internal: true, driver_opts: { 'com.docker.network.bridge.inhibit_ipv4': 'true' } };
        return [
          key,
          {
            name: `${project}_${key}`,
            driver: elevated ? (textOf(own.driver) ?? 'bridge') : 'bridge',
            ...ours,
            ...(chosen === null ? {} : { ipam: chosen }),
            labels: { ...labels },
          },
        ];
      }),
    );
  }

  #volumes(): Tree {
    const { project, labels, elevated } = this.#terms;
    return Object.fromEntries(
      [...this.#mounts.usedVolumes].map((key) => {
        const own = isTree(this.#project.volumes[key]) ? this.#project.volumes[key] : {};
        if (elevated && isTruthy(own.external))
          return [key, { external: true, name: textOf(own.name) ?? key }];
        const options = isTree(own.driver_opts) ? { driver_opts: own.driver_opts } : {};
        return [key, { name: `${project}_${key}`, ...options, labels: { ...labels } }];
      }),
    );
  }

  #portOwners(): Map<number, string> {
    const owners = new Map<number, string>();
    for (const [name, service] of this.#project.services) {
      const exposed = listOf(service.expose).map((port) => numberOf(String(port).split('/')[0]));
      const ports = [...(listOf(service.ports) as PortMapping[]).map(({ target }) => target), ...exposed];
      for (const port of ports) if (port !== null && !owners.has(port)) owners.set(port, name);
    }
    return owners;
  }
}

function withValues(environment: Tree): Tree {
  return Object.fromEntries(Object.entries(environment).filter(([, value]) => value !== null));
}

function dependencies(all: Tree, services: ReadonlyMap<string, Tree>): Tree {
  const there = Object.entries(all).filter(([name]) => services.has(name));
  return Object.fromEntries(
    there.map(([name, options]) => [
      name,
      { condition: (isTree(options) ? textOf(options.condition) : null) ?? 'service_started' },
    ]),
  );
}

export function planStack(
  project: Project,
  tree: TreeView,
  terms: StackTerms,
  findings: Findings,
): StackPlan {
  return new Planner(project, tree, terms, findings).plan();
}
