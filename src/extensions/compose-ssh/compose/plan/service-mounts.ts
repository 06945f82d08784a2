/** Mounts of a service: its volumes and binds, its secrets and configs, and the agent. */

import type { Mount } from '../load/mount.ts';
import { AGENT_DIRECTORY } from '../model/read-service.ts';
import type { Grant, ServiceModel, StackModel } from '../model/stack-model.ts';
import type { Tree } from '../yaml/compose-yaml.ts';
import type { StackTerms } from './plan-stack.ts';
import type { SourcePlaces } from './source-places.ts';

type Terms = Pick<StackTerms, 'directory' | 'secretDirectory' | 'agent' | 'secrets' | 'fromSeed'>;

/** Returns whether a service gets a secret: services that name it do; if none does, all do. */
export function wantsSecret(
  services: ReadonlyMap<string, ServiceModel>,
  service: ServiceModel,
  secret: string,
  by: 'environment' | 'secrets',
): boolean {
  const names = ({ unvalued, secrets }: ServiceModel) =>
    by === 'environment' ? unvalued.includes(secret) : secrets.some(({ source }) => source === secret);
  return names(service) || ![...services.values()].some(names);
}

export class ServiceMounts {
  /** Small generated files that services mount: path from the stack’s directory → content. */
  readonly files = new Map<string, string>();
  readonly usedVolumes = new Set<string>();
  readonly #stack: StackModel;
  readonly #terms: Terms;
  readonly #places: SourcePlaces;

  constructor(stack: StackModel, terms: Terms, places: SourcePlaces) {
    this.#stack = stack;
    this.#terms = terms;
    this.#places = places;
  }

  of(service: ServiceModel): Tree[] {
    const mounts: Tree[] = [];
    const targets = new Set(service.mounts.map(({ target }) => target));
    for (const mount of service.mounts) {
      mounts.push(this.#mount(mount));
      if (mount.type !== 'bind' || 'outside' in mount.source) continue;
      for (const { place, below } of this.#places.inner(mount.source.inside)) {
        const target = `${mount.target}/${below}`;
        if (!targets.has(target)) mounts.push(bind(this.#hostPath(place), target, mount.readOnly));
      }
    }
    mounts.push(
      ...this.#given(service),
      ...this.#grants('secrets', service),
      ...this.#grants('configs', service),
    );
    return [...mounts, bind(this.#terms.agent, `${AGENT_DIRECTORY}/agent`, true)];
  }

  #hostPath(place: string): string {
    return `${this.#terms.directory}/${place}`;
  }

  #mount(mount: Mount): Tree {
    const { target, readOnly } = mount;
    if (mount.type === 'tmpfs') {
      const { sizeBytes, mode } = mount;
      const tmpfs = {
        ...(sizeBytes === null ? {} : { size: sizeBytes }),
        ...(mode === null ? {} : { mode }),
      };
      return { type: 'tmpfs', target, ...(Object.keys(tmpfs).length > 0 ? { tmpfs } : {}) };
    }
    if (mount.type === 'volume') {
      if (mount.source !== null) this.usedVolumes.add(mount.source);
      return {
        type: 'volume',
        target,
        ...(mount.source === null ? {} : { source: mount.source }),
        ...(readOnly ? { read_only: true } : {}),
        ...(mount.nocopy || this.#terms.fromSeed ? { volume: { nocopy: true } } : {}),
      };
    }
    const { source, propagation } = mount;
    const path = 'inside' in source ? this.#hostPath(this.#places.bind(source.inside)) : source.outside;
    return {
      ...bind(path, target, readOnly),
      ...('outside' in source && propagation !== null ? { bind: { propagation } } : {}),
    };
  }

  /** Mounts the secrets of the sandbox that are delivered by file. */
  #given(service: ServiceModel): Tree[] {
    return this.#terms.secrets
      .filter(({ name, delivery }) => delivery === 'file' && this.#wants(service, name))
      .map(({ name }) => {
        const { target } = service.secrets.find(({ source }) => source === name) ?? {
          target: `/run/secrets/${name}`,
        };
        return bind(`${this.#terms.secretDirectory}/${name}`, target, true);
      });
  }

  #wants(service: ServiceModel, secret: string): boolean {
    return wantsSecret(this.#stack.services, service, secret, 'secrets');
  }

  /** Mounts secrets and configs as binds of files: these work the same in both generations of compose, for both kinds. */
  #grants(kind: 'secrets' | 'configs', service: ServiceModel): Tree[] {
    const isGiven = (grant: Grant) =>
      kind === 'secrets' &&
      this.#terms.secrets.some(({ name, delivery }) => name === grant.source && delivery === 'file');
    return service[kind].flatMap((grant) => {
      const path = isGiven(grant) ? null : this.#contentOf(kind, grant.source);
      return path === null ? [] : [bind(path, grant.target, true)];
    });
  }

  #contentOf(kind: 'secrets' | 'configs', name: string): string | null {
    const content = this.#stack[kind].get(name) ?? null;
    if (content === null) return null;
    if ('file' in content)
      return 'inside' in content.file
        ? this.#hostPath(this.#places.file(content.file.inside))
        : content.file.outside;
    const place = `texts/${[...this.#stack[kind].keys()].indexOf(name)}`;
    this.files.set(place, content.text);
    return this.#hostPath(place);
  }
}

function bind(source: string, target: string, readOnly: boolean): Tree {
  return { type: 'bind', source, target, ...(readOnly ? { read_only: true } : {}) };
}
