/**
 * Turns the model of a stack into the only file that compose gets. The file is written from the model, so that exactly the judged
 * stack runs.
 */
import type { Resources } from '../../../../contract/profiles/profile.ts';
import type { EngineLimit } from '../../remote/engine.ts';
import { fromTheTop } from '../../remote/subnets.ts';
import type { ServiceLimits, ServiceModel, StackModel } from '../model/stack-model.ts';
import { IMAGE_PREFIX } from '../shapes/image-name.ts';
import type { TreeView } from '../tree/tree-view.ts';
import type { Tree } from '../yaml/compose-yaml.ts';
import { writeComposeYaml } from '../yaml/compose-yaml.ts';
import type { Finding, Findings } from '../yaml/finding.ts';
import { StackRefusal } from '../yaml/finding.ts';
import { numberOf } from '../yaml/scalars.ts';
import { emitBuild, emitLimits, emitOwn } from './emit-service.ts';
import { knownTo } from './newer-fields.ts';
import { ServiceMounts } from './service-mounts.ts';
import { shareLimits } from './share-limits.ts';
import type { Copy } from './source-places.ts';
import { SourcePlaces } from './source-places.ts';

export interface StackTerms {
  readonly project: string;
  /** Labels of the stamp, on everything the engine makes. */
  readonly labels: Readonly<Record<string, string>>;
  readonly openNetwork: boolean;
  readonly resources: Resources;
  readonly elevated: boolean;
  /** Variables for every service that has no value of its own. */
  readonly variables: Readonly<Record<string, string>>;
  readonly secrets: readonly { readonly name: string; readonly delivery: 'file' | 'env' }[];
  /** Directory of the stack on the host. */
  readonly directory: string;
  readonly secretDirectory: string;
  readonly agent: string;
  readonly gatewayImage: string;
  /** Whether the stack is made from a snapshot: its images have the backend's names, and only the backend fills its volumes. */
  readonly fromSeed: boolean;
  /** Subnets, one for each network, in order; more than there are networks is fine. */
  readonly subnets: readonly string[];
  /** The version of the compose that reads the file; `null`: one that knows every field. */
  readonly composeVersion: string | null;
  /** Limits that the engine would ignore, or refuse. */
  readonly unheld: readonly EngineLimit[];
}

export interface StackPlan {
  /** The file for compose. */
  readonly file: string;
  readonly services: readonly string[];
  /** Small generated files that services mount: path from the stack’s directory → content. */
  readonly files: ReadonlyMap<string, string>;
  readonly directories: readonly string[];
  readonly copies: readonly Copy[];
  /** Port of the gateway → the service and its port behind it. Empty where the engine itself publishes. */
  readonly gatewayPorts: ReadonlyMap<number, { readonly service: string; readonly target: number }>;
  /** Port → the service that it belongs to. */
  readonly portOwners: ReadonlyMap<number, string>;
  readonly builtImages: readonly string[];
  /** Images that the host has, or pulls. */
  readonly namedImages: readonly string[];
  readonly networkCount: number;
  readonly notes: readonly string[];
}

export const GATEWAY = 'sandboxer-gateway';
const INGRESS = 'sandboxer-ingress';
const GATEWAY_FIRST_PORT = 20_000;
const HEADING = 'Written by sand-boxer from what it understood of the compose files of the repository.';
const NOWHERE: ServiceLimits = { cpus: null, memoryBytes: null, pids: null };

class Planner {
  readonly #stack: StackModel;
  readonly #terms: StackTerms;
  readonly #notes: string[] = [];
  readonly #tooNew: Finding[] = [];
  readonly #places: SourcePlaces;
  readonly #mounts: ServiceMounts;
  readonly #limits: ReadonlyMap<string, ServiceLimits>;
  readonly #usedNetworks = new Set<string>();
  readonly #builtImages: string[] = [];
  readonly #namedImages = new Set<string>();
  readonly #published: { service: string; target: number }[] = [];

  constructor(stack: StackModel, tree: TreeView, terms: StackTerms, findings: Findings) {
    this.#stack = stack;
    this.#terms = terms;
    this.#places = new SourcePlaces(stack.services.values(), tree);
    this.#mounts = new ServiceMounts(stack, terms, this.#places);
    this.#limits = shareLimits(stack.services, terms.resources, findings);
    this.#notes.push(...findings.notes);
    if (terms.unheld.length > 0)
      this.#notes.push(
        `The engine does not enforce ${terms.unheld.join(', ')}: services have no such limit.`,
      );
    for (const name of stack.unset) this.#notes.push(`The variable ${name} is not set: it is empty.`);
  }

  plan(): StackPlan {
    const services: { [name: string]: Tree } = {};
    for (const [name, service] of this.#stack.services)
      services[name] = this.#known(name, this.#service(service));
    if (this.#tooNew.length > 0) throw new StackRefusal('SBX_UNSUPPORTED', this.#tooNew);
    const gateway = this.#terms.openNetwork ? null : this.#gateway(services);
    if (gateway !== null) services[GATEWAY] = gateway.service;
    const networks = { ...this.#networks(), ...gateway?.networks };
    return {
      file: writeComposeYaml({ version: '3.8', services, networks, volumes: this.#volumes() }, HEADING),
      services: [...this.#stack.services.keys()],
      files: this.#mounts.files,
      directories: this.#places.missing,
      copies: this.#places.copies,
      gatewayPorts: gateway?.ports ?? new Map(),
      portOwners: this.#portOwners(),
      builtImages: this.#builtImages,
      namedImages: [...this.#namedImages],
      networkCount: Object.keys(networks).length,
      notes: [...new Set(this.#notes)],
    };
  }

  #service(service: ServiceModel): Tree {
    const ports = this.#ports(service);
    return {
      ...this.#image(service),
      ...emitOwn(service, this.#stack, this.#terms),
      ...emitLimits(service, this.#limits.get(service.name) ?? NOWHERE, this.#terms.unheld),
      volumes: this.#mounts.of(service),
      ...(ports.length > 0 ? { ports } : {}),
      ...(service.networkMode === null ? { networks: this.#serviceNetworks(service) } : {}),
    };
  }

  /** Leaves out fields that the host's compose does not know, with a note, or refuses them. */
  #known(name: string, emitted: Tree): Tree {
    const { composeVersion } = this.#terms;
    if (composeVersion === null) return emitted;
    const { service, unknown } = knownTo(composeVersion, emitted);
    for (const { field, place } of unknown) {
      const why = `it needs compose ${field.since}, and the host has ${composeVersion}`;
      if (field.otherwise === 'dropped') this.#notes.push(`${name}: left out: ${place}: ${why}.`);
      else
        this.#tooNew.push({
          kind: 'invalid',
          service: name,
          field: place,
          detail: `${why[0]?.toUpperCase()}${why.slice(1)}.`,
          remedy: field.remedy ?? 'Remove it, or use a host with a newer compose.',
        });
    }
    return service;
  }

  #image({ name, image, build }: ServiceModel): Tree {
    const { fromSeed, project, openNetwork } = this.#terms;
    if (!fromSeed && build === null) {
      if (image === null) return {};
      this.#namedImages.add(image);
      return { image };
    }
    const own = `${IMAGE_PREFIX}${project}-${name.toLowerCase()}`;
    this.#builtImages.push(own);
    if (fromSeed || build === null) return { image: own };
    if (!openNetwork) this.#notes.push('Images are built without a network, as the sandbox has none.');
    return { image: own, build: emitBuild(build, this.#places, this.#terms) };
  }

  #ports({ name, ports }: ServiceModel): string[] {
    const tcp = new Set<number>();
    for (const { target, protocol, published } of ports) {
      if (protocol === 'udp') this.#notes.push(`${name}: the udp port ${target} is not published.`);
      else tcp.add(target);
      if (published !== null && /^(?:[\w.:[\]]{1,64}:)?\d{1,5}$/.test(published))
        this.#notes.push(`${name}: port ${target} is at a free port of the host instead of ${published}.`);
    }
    const targets = [...tcp];
    for (const target of targets) this.#published.push({ service: name, target });
    return this.#terms.openNetwork ? targets.map((target) => `127.0.0.1::${target}`) : [];
  }

  #serviceNetworks({ networks }: ServiceModel): Tree {
    const wanted = networks.size > 0 ? Object.fromEntries(networks) : { default: {} };
    for (const network of Object.keys(wanted)) this.#usedNetworks.add(network);
    return wanted;
  }

  /**
   * Adds the gateway. A stack without a network has no ports on the host either. So one container, which runs only the agent,
   * joins its networks and one more, and forwards connections to the ports that services publish.
   */
  #gateway(services: { [name: string]: Tree }) {
    const ports = new Map<number, { service: string; target: number }>();
    const forwards: string[] = [];
    const joined: Tree = {};
    const networkOrder = [...this.#usedNetworks];
    const addresses = new Map<string, string>();
    for (const { service, target } of this.#published) {
      const [, owner = service] =
        /^service:(.+)$/.exec(this.#stack.services.get(service)?.networkMode ?? '') ?? [];
      const tree = services[owner] ?? {};
      const joinedBy = (tree.networks ?? {}) as { [network: string]: Tree };
      const [network] = Object.keys(joinedBy);
      if (network === undefined || tree.scale !== undefined) {
        this.#notes.push(`${service}: port ${target} is not published: it has no one address.`);
        continue;
      }
      const subnet = this.#terms.subnets[networkOrder.indexOf(network)];
      const taken = [...addresses.keys()].filter((key) => key.endsWith(`\n${network}`)).length;
      const key = `${owner}\n${network}`;
      const address = addresses.get(key) ?? (subnet === undefined ? '0.0.0.0' : fromTheTop(subnet, taken));
      addresses.set(key, address);
      tree.networks = { ...joinedBy, [network]: { ...joinedBy[network], ipv4_address: address } };
      joined[network] = {};
      const port = GATEWAY_FIRST_PORT + ports.size;
      ports.set(port, { service, target });
      forwards.push('--forward', `${port}=${address}:${target}`);
    }
    if (ports.size === 0) return null;
    const { project, labels, gatewayImage, subnets, unheld } = this.#terms;
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
      ...(unheld.includes('memory_mb') ? {} : { mem_limit: 128 * 1_048_576 }),
      ...(unheld.includes('pids') ? {} : { pids_limit: 300 }),
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
        const own = this.#stack.networks.get(key) ?? {};
        const subnet = subnets[n];
        if (elevated && own.external) return [key, { external: true, name: own.name ?? key }];
        const given = elevated ? own.ipam : undefined;
        const ipam = given ?? (subnet === undefined ? undefined : { config: [{ subnet }] });
        const options = {
          ...(elevated ? own.driver_opts : {}),
          ...(openNetwork ? {} : { 'com.docker.network.bridge.inhibit_ipv4': 'true' }),
        };
        const network = {
          name: `${project}_${key}`,
          driver: elevated && own.driver !== 'default' ? (own.driver ?? 'bridge') : 'bridge',
          internal: !openNetwork || own.internal === true,
          ...(Object.keys(options).length > 0 ? { driver_opts: options } : {}),
          ...(ipam === undefined ? {} : { ipam }),
          labels: { ...labels },
        };
        return [key, network];
      }),
    );
  }

  #volumes(): Tree {
    const { project, labels, elevated } = this.#terms;
    return Object.fromEntries(
      [...this.#mounts.usedVolumes].map((key) => {
        const { external, name, driver, driver_opts } = this.#stack.volumes.get(key) ?? {};
        if (elevated && external) return [key, { external: true, name: name ?? key }];
        const chosen = elevated && driver !== undefined && driver !== 'default' ? { driver } : {};
        const options = driver_opts === undefined ? {} : { driver_opts };
        return [key, { name: `${project}_${key}`, ...chosen, ...options, labels: { ...labels } }];
      }),
    );
  }

  #portOwners(): Map<number, string> {
    const owners = new Map<number, string>();
    for (const { name, ports, fields } of this.#stack.services.values()) {
      const exposed = (fields.expose ?? []).map((port) => numberOf(port.split('/')[0]));
      for (const port of [...ports.map(({ target }) => target), ...exposed])
        if (port !== null && !owners.has(port)) owners.set(port, name);
    }
    return owners;
  }
}

export function planStack(
  stack: StackModel,
  tree: TreeView,
  terms: StackTerms,
  findings: Findings,
): StackPlan {
  return new Planner(stack, tree, terms, findings).plan();
}
