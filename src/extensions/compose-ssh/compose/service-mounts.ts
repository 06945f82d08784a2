/** What is mounted into a service: volumes and binds of its own, secrets and configs, and our agent. */
import type { bindPlaces } from './bind-places.ts';
import { realSource } from './bind-places.ts';
import type { Tree } from './compose-yaml.ts';
import { isTree } from './compose-yaml.ts';
import { AGENT_DIRECTORY } from './judge-boundary.ts';
import type { Project } from './load-project.ts';
import type { Mount } from './mount.ts';
import type { StackTerms } from './plan-stack.ts';
import { listOf, textOf } from './scalars.ts';
import type { PathRef } from './tree-path.ts';
import type { TreeView } from './tree-view.ts';
import { realInTree } from './tree-view.ts';

type Terms = Pick<StackTerms, 'directory' | 'secretDirectory' | 'agent' | 'secrets' | 'fromSeed'>;

/** Services that name a secret get it; where nobody does, everybody. */
export function wantsSecret(
  project: Project,
  service: string,
  secret: string,
  by: 'environment' | 'secrets',
): boolean {
  const names = (tree: Tree) =>
    by === 'environment'
      ? isTree(tree.environment) && tree.environment[secret] === null
      : (listOf(tree.secrets) as { source: string }[]).some(({ source }) => source === secret);
  const named = [...project.services].filter(([, tree]) => names(tree)).map(([name]) => name);
  return named.length === 0 || named.includes(service);
}

export class ServiceMounts {
  /** Small files of ours that services mount. */
  readonly files = new Map<string, string>();
  readonly usedVolumes = new Set<string>();
  readonly #project: Project;
  readonly #tree: TreeView;
  readonly #terms: Terms;
  readonly #places: ReturnType<typeof bindPlaces>;

  constructor(project: Project, tree: TreeView, terms: Terms, places: ReturnType<typeof bindPlaces>) {
    this.#project = project;
    this.#tree = tree;
    this.#terms = terms;
    this.#places = places;
  }

  #hostPath(place: string): string {
    return `${this.#terms.directory}/${place}`;
  }

  of(name: string, service: Tree): Tree[] {
    const mounts: Tree[] = [];
    const targets = new Set((listOf(service.volumes) as Mount[]).map(({ target }) => target));
    for (const mount of listOf(service.volumes) as Mount[]) {
      mounts.push(this.#mount(mount));
      const source = realSource(mount, this.#tree);
      if (source === null) continue;
      for (const { place, below } of this.#places.inner(source)) {
        const target = `${mount.target.replace(/\/$/, '')}/${below}`;
        if (!targets.has(target)) mounts.push(bind(this.#hostPath(place), target, mount.readOnly));
      }
    }
    mounts.push(...this.#grants(name, service), bind(this.#terms.agent, `${AGENT_DIRECTORY}/agent`, true));
    return mounts;
  }

  #mount(mount: Mount): Tree {
    if (mount.type === 'tmpfs') {
      const { sizeBytes, mode, target } = mount;
      const options = {
        ...(sizeBytes === null ? {} : { size: sizeBytes }),
        ...(mode === null ? {} : { mode }),
      };
      return { type: 'tmpfs', target, ...(Object.keys(options).length > 0 ? { tmpfs: options } : {}) };
    }
    if (mount.type === 'volume') {
      if (mount.source !== null) this.usedVolumes.add(mount.source);
      return {
        type: 'volume',
        target: mount.target,
        ...(mount.source === null ? {} : { source: mount.source }),
        ...(mount.readOnly ? { read_only: true } : {}),
        ...(mount.nocopy || this.#terms.fromSeed ? { volume: { nocopy: true } } : {}),
      };
    }
    const source = realSource(mount, this.#tree);
    if (source !== null)
      return bind(this.#hostPath(this.#places.placeOf(source)), mount.target, mount.readOnly);
    const { source: named, propagation } = mount;
    const outside = 'outside' in named ? named.outside : this.#hostPath(`tree/${named.inside}`);
    return {
      ...bind(outside, mount.target, mount.readOnly),
      ...(propagation === null ? {} : { bind: { propagation } }),
    };
  }

  /** Secrets and configs as the files they are: both generations of compose, and both kinds, do the same with a bind. */
  #grants(name: string, service: Tree): Tree[] {
    const mounts: Tree[] = [];
    for (const { name: secret, delivery } of this.#terms.secrets) {
      if (delivery !== 'file' || !wantsSecret(this.#project, name, secret, 'secrets')) continue;
      const grant = (listOf(service.secrets) as Tree[]).find(({ source }) => source === secret);
      mounts.push(
        bind(`${this.#terms.secretDirectory}/${secret}`, grantTarget('/run/secrets', secret, grant), true),
      );
    }
    for (const kind of ['secrets', 'configs'] as const) {
      for (const grant of listOf(service[kind]) as Tree[]) {
        const source = String(grant.source);
        if (
          kind === 'secrets' &&
          this.#terms.secrets.some(({ name: given, delivery }) => given === source && delivery === 'file')
        )
          continue;
        const definition = this.#project[kind][source];
        const path = this.#grantSource(kind, source, isTree(definition) ? definition : {});
        if (path !== null)
          mounts.push(bind(path, grantTarget(kind === 'secrets' ? '/run/secrets' : '', source, grant), true));
      }
    }
    return mounts;
  }

  #grantSource(kind: 'secrets' | 'configs', source: string, definition: Tree): string | null {
    const file = definition.file as PathRef | undefined;
    if (file !== undefined) {
      const real = 'inside' in file ? realInTree(this.#tree, file.inside) : null;
      return real === null ? ('outside' in file ? file.outside : null) : this.#hostPath(`tree/${real}`);
    }
    const content = textOf(definition.content);
    if (content === null) return null;
    const place = `${kind}/${source}`;
    this.files.set(place, content);
    return this.#hostPath(place);
  }
}

function bind(source: string, target: string, readOnly: boolean): Tree {
  return { type: 'bind', source, target, ...(readOnly ? { read_only: true } : {}) };
}

function grantTarget(directory: string, name: string, grant: Tree | undefined): string {
  const target = textOf(grant?.target) ?? name;
  return target.startsWith('/') ? target : `${directory}/${target}`;
}
