/** What of a stack would reach out of the sandbox. */
import type { Tree } from './compose-yaml.ts';
import { isTree } from './compose-yaml.ts';
import type { Findings } from './finding.ts';
import type { Project } from './load-project.ts';
import type { Mount } from './mount.ts';
import { isTruthy, listOf, textOf } from './scalars.ts';
import { judgeField } from './service-fields.ts';
import type { PathRef } from './tree-path.ts';
import type { TreeView } from './tree-view.ts';
import { joinInTree, realInTree } from './tree-view.ts';

/** Names that are ours: images that are built for a sandbox, mounts of the agent. */
export const IMAGE_PREFIX = 'sandboxer-';
export const AGENT_DIRECTORY = '/.sandboxer';
const OUR_LABEL = /^io\.sandboxer\./;
const COMPOSE_LABEL = /^com\.docker\.compose\./;

const IN_TREE = 'Use a path of the repository, or a named volume.';

class Judge {
  readonly #tree: TreeView;
  readonly #findings: Findings;
  readonly #project: Project;
  /** Names of the secrets that the sandbox itself has. */
  readonly #given: ReadonlySet<string>;

  constructor(project: Project, tree: TreeView, findings: Findings, given: ReadonlySet<string>) {
    this.#given = given;
    this.#project = project;
    this.#tree = tree;
    this.#findings = findings;
  }

  service(name: string, service: Tree): void {
    for (const [field, value] of Object.entries(service)) {
      const judged = judgeField(field, value);
      if ('detail' in judged) this.#findings.add(judged.verdict, name, field, judged.detail, judged.remedy);
    }
    this.#image(name, service);
    this.#build(name, service.build);
    for (const [n, mount] of (listOf(service.volumes) as Mount[]).entries()) this.#mount(name, n, mount);
    this.#network(name, service);
    this.#deploy(name, service.deploy);
    this.#references(name, service);
    this.#labels(name, service.labels);
  }

  #image(name: string, { image, build }: Tree): void {
    const text = textOf(image);
    if (text === null && build === undefined)
      this.#findings.invalid(name, 'image', 'There is neither an image nor a build.', 'Name an image.');
    if (text?.startsWith(`${IMAGE_PREFIX}sbx`))
      this.#findings.invalid(
        name,
        'image',
        `Images named ${IMAGE_PREFIX}… belong to other sandboxes.`,
        'Use another image.',
      );
    if (text !== null && !/^[\w][\w.\-/:@]{0,511}$/.test(text))
      this.#findings.invalid(
        name,
        'image',
        `${JSON.stringify(text.slice(0, 80))} is no name of an image.`,
        'Correct it.',
      );
  }

  #build(name: string, build: unknown): void {
    if (!isTree(build)) return;
    const inTree = (path: PathRef, field: string) => {
      const named = 'inside' in path ? path.inside : path.outside;
      if ('outside' in path || realInTree(this.#tree, path.inside) === null) {
        this.#findings.boundary(
          name,
          field,
          `${named} is outside of the shipped tree.`,
          'Build from a directory of the repository.',
        );
        return false;
      }
      return true;
    };
    const context = build.context as PathRef;
    const dockerfile = textOf(build.dockerfile);
    if (inTree(context, 'build.context') && dockerfile !== null && 'inside' in context) {
      const path = joinInTree(context.inside, dockerfile);
      inTree(path === null ? { outside: dockerfile } : { inside: path }, 'build.dockerfile');
    }
    const known = new Set([
      'context',
      'dockerfile',
      'dockerfile_inline',
      'args',
      'target',
      'labels',
      'cache_from',
      'network',
      'shm_size',
      'pull',
      'no_cache',
      'platforms',
      'extra_hosts',
    ]);
    for (const [field, value] of Object.entries(build)) {
      if (field === 'network') {
        if (!['none', 'default'].includes(textOf(value) ?? ''))
          this.#findings.boundary(
            name,
            'build.network',
            'It would be built in a network of the host.',
            'Remove it.',
          );
      } else if (field === 'privileged' && !isTruthy(value)) {
        // Says nothing.
      } else if (!known.has(field)) {
        this.#findings.boundary(
          name,
          `build.${field}`,
          'It would reach beyond the files of the build, or name what others use.',
          'Remove it.',
        );
      }
    }
  }

  #mount(name: string, n: number, mount: Mount): void {
    const field = `volumes[${n}]`;
    if (mount.target === AGENT_DIRECTORY || mount.target.startsWith(`${AGENT_DIRECTORY}/`)) {
      this.#findings.invalid(
        name,
        `${field}.target`,
        `${AGENT_DIRECTORY} is where the agent lives.`,
        'Use another target.',
      );
    }
    if (mount.type === 'volume') {
      if (mount.source !== null && !Object.hasOwn(this.#project.volumes, mount.source)) {
        this.#findings.invalid(
          name,
          field,
          `There is no volume ${mount.source} in "volumes".`,
          `Add "${mount.source}:" below "volumes:".`,
        );
      }
      return;
    }
    if (mount.type !== 'bind') return;
    if (mount.propagation !== null && !/^r?private$/.test(mount.propagation)) {
      this.#findings.boundary(
        name,
        `${field}.bind.propagation`,
        'Mounts made inside would appear on the host.',
        'Remove it.',
      );
    }
    const { source } = mount;
    if ('outside' in source) {
      const socket = /\/(?:docker|podman|containerd|crio)[\w.-]*\.sock$/.test(source.outside);
      const detail = socket
        ? `${source.outside} is the engine: who has it has the host.`
        : `${source.outside} is outside of the shipped tree.`;
      this.#findings.boundary(name, `${field}.source`, detail, socket ? 'Remove it.' : IN_TREE);
    } else if (realInTree(this.#tree, source.inside) === null) {
      this.#findings.boundary(
        name,
        `${field}.source`,
        `${source.inside} leads out of the shipped tree by a link.`,
        IN_TREE,
      );
    }
  }

  #deploy(name: string, deploy: unknown): void {
    const resources = isTree(deploy) && isTree(deploy.resources) ? deploy.resources : {};
    const reserved = isTree(resources.reservations) ? resources.reservations : {};
    if (listOf(reserved.devices).length === 0) return;
    this.#findings.boundary(
      name,
      'deploy.resources.reservations.devices',
      'It would reach devices of the host.',
      'Use a profile with resources.gpu.',
    );
  }

  #network(name: string, { network_mode, networks }: Tree): void {
    const mode = textOf(network_mode);
    if (mode !== null && mode !== 'none' && !/^service:[\w.-]+$/.test(mode)) {
      const detail =
        mode === 'host'
          ? 'It would be in the network of the host.'
          : `${JSON.stringify(mode)} is a network outside of the stack.`;
      this.#findings.boundary(
        name,
        'network_mode',
        detail,
        'Remove it: services of a stack reach each other by name.',
      );
    }
    if (mode !== null && isTree(networks))
      this.#findings.invalid(
        name,
        'network_mode',
        'It cannot be together with "networks".',
        'Remove one of the two.',
      );
    for (const [network, options] of Object.entries(isTree(networks) ? networks : {})) {
      const field = `networks.${network}`;
      if (network !== 'default' && !Object.hasOwn(this.#project.networks, network)) {
        this.#findings.invalid(
          name,
          field,
          `There is no network ${network} in "networks".`,
          `Add "${network}:" below "networks:".`,
        );
      }
      for (const [key, value] of Object.entries(isTree(options) ? options : {})) {
        if (['aliases', 'priority'].includes(key) || value === null) continue;
        this.#findings.boundary(
          name,
          `${field}.${key}`,
          'Addresses are ours to choose, so that many stacks fit on one host.',
          'Remove it: services reach each other by name.',
        );
      }
    }
  }

  /** Whatever names another service must find it. */
  #references(name: string, service: Tree): void {
    const { services } = this.#project;
    const need = (other: string, field: string) => {
      if (!services.has(other))
        this.#findings.invalid(
          name,
          field,
          `There is no service ${other}, or no chosen profile has it.`,
          'Name a service of the stack.',
        );
      else if (other === name) this.#findings.invalid(name, field, 'It needs itself.', 'Remove it.');
    };
    for (const [other, options] of Object.entries(isTree(service.depends_on) ? service.depends_on : {})) {
      const optional = isTree(options) && options.required === false;
      if (!optional || services.has(other)) need(other, 'depends_on');
    }
    for (const field of ['network_mode', 'pid', 'ipc']) {
      const [, other] = /^service:(.+)$/.exec(textOf(service[field]) ?? '') ?? [];
      if (other !== undefined) need(other, field);
    }
    for (const link of listOf(service.links)) need(String(link).split(':')[0] ?? '', 'links');
    for (const from of listOf(service.volumes_from)) {
      const text = String(from);
      if (text.startsWith('container:'))
        this.#findings.boundary(
          name,
          'volumes_from',
          `${text} is outside of the stack.`,
          'Use a named volume.',
        );
      else need(text.split(':')[0] ?? '', 'volumes_from');
    }
    for (const kind of ['secrets', 'configs'] as const) {
      for (const { source } of listOf(service[kind]) as { source: string }[]) {
        if (!Object.hasOwn(this.#project[kind], source))
          this.#findings.invalid(
            name,
            kind,
            `There is no ${source} in "${kind}".`,
            `Add "${source}:" below "${kind}:".`,
          );
      }
    }
  }

  #labels(name: string, labels: unknown): void {
    const ours = Object.keys(isTree(labels) ? labels : {}).find(
      (label) => OUR_LABEL.test(label) || COMPOSE_LABEL.test(label),
    );
    if (ours !== undefined)
      this.#findings.invalid(
        name,
        `labels.${ours}`,
        'This label says whose a container is.',
        'Use another name.',
      );
  }

  /** Files of secrets and configs that services use. */
  grants(): void {
    for (const kind of ['secrets', 'configs'] as const) {
      const used = new Set(
        [...this.#project.services.values()].flatMap((service) =>
          (listOf(service[kind]) as { source: string }[]).map(({ source }) => source),
        ),
      );
      for (const name of used) {
        const definition = this.#project[kind][name];
        if (!isTree(definition) || (kind === 'secrets' && this.#given.has(name))) continue;
        const file = definition.file as PathRef | undefined;
        const field = `${kind}.${name}`;
        if (file !== undefined) {
          const named = 'inside' in file ? file.inside : file.outside;
          if ('outside' in file || realInTree(this.#tree, file.inside) === null) {
            this.#findings.boundary(
              null,
              `${field}.file`,
              `${named} is outside of the shipped tree.`,
              'Put it into the repository, or give it as a secret of the sandbox.',
            );
          } else if (this.#tree.kind(realInTree(this.#tree, file.inside) ?? '') !== 'file') {
            this.#findings.invalid(null, `${field}.file`, `There is no file ${named}.`, 'Ship it.');
          }
        } else if (kind === 'secrets' || textOf(definition.content) === null) {
          const remedy =
            kind === 'secrets'
              ? `Give a secret named ${name}, delivered by file, with the sandbox.`
              : 'Use "file" or "content".';
          this.#findings.invalid(null, field, 'Where its content comes from is not known here.', remedy);
        }
      }
    }
  }

  /** Networks and volumes as a whole. */
  shared(): void {
    for (const [name, network] of Object.entries(this.#project.networks)) {
      const { external, driver, driver_opts, ipam, enable_ipv6, attachable } = isTree(network) ? network : {};
      const field = (key: string) => `networks.${name}.${key}`;
      if (isTruthy(external))
        this.#findings.boundary(
          null,
          field('external'),
          'It is shared with what is not of the stack.',
          'Remove "external".',
        );
      if (!['bridge', 'default', null].includes(textOf(driver)))
        this.#findings.boundary(null, field('driver'), 'Only bridges stay within the host.', 'Remove it.');
      for (const [key, value] of Object.entries({ driver_opts, ipam, enable_ipv6, attachable })) {
        const empty =
          !isTruthy(value) ||
          (isTree(value) && Object.keys(value).length === 0) ||
          (key === 'ipam' &&
            isTree(value) &&
            Object.keys(value).every((part) => part === 'driver' && value.driver === 'default'));
        if (!empty)
          this.#findings.boundary(
            null,
            field(key),
            'How a network is made is ours to choose, so that many stacks fit on one host.',
            'Remove it.',
          );
      }
    }
    for (const [name, volume] of Object.entries(this.#project.volumes)) {
      const { external, driver, driver_opts } = isTree(volume) ? volume : {};
      const field = (key: string) => `volumes.${name}.${key}`;
      if (isTruthy(external))
        this.#findings.boundary(
          null,
          field('external'),
          'It is shared with what is not of the stack.',
          'Remove "external".',
        );
      if (!['local', 'default', null].includes(textOf(driver)))
        this.#findings.boundary(
          null,
          field('driver'),
          'Only local volumes stay within the host.',
          'Remove it.',
        );
      if (
        isTree(driver_opts) &&
        Object.keys(driver_opts).length > 0 &&
        textOf(driver_opts.type) !== 'tmpfs'
      ) {
        this.#findings.boundary(
          null,
          field('driver_opts'),
          'It mounts something of the host or of the network.',
          'Remove it, or use a bind of a path of the repository.',
        );
      }
    }
  }
}

export function judgeBoundary(
  project: Project,
  tree: TreeView,
  findings: Findings,
  given: ReadonlySet<string> = new Set(),
): void {
  const judge = new Judge(project, tree, findings, given);
  for (const [name, service] of project.services) judge.service(name, service);
  judge.shared();
  judge.grants();
}
