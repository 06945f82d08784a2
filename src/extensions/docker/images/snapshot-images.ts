/** Snapshots and forks: images that were committed from a container. */
import { SandboxerError } from '../../../contract/errors/errors.ts';
import type { OwnedSnapshot, SnapshotSpec, TakenSnapshot } from '../../../core/ports/extension.ts';
import { channelIn } from '../channel/reach.ts';
import type { ChannelKind } from '../containers/container-config.ts';
import { doorOf, LABEL, labelChanges } from '../containers/labels.ts';
import type { EngineClient } from '../engine/engine-client.ts';
import { BACKEND, isConflict, isMissing } from '../engine/engine-error.ts';
import type { Container } from '../engine/engine-replies.ts';
import { Created, History, Image, ImageList } from '../engine/engine-replies.ts';

const COMMIT_MS = 600_000;
const SNAPSHOTS = 'sandboxer-snapshot';
const FORKS = 'sandboxer-fork';

export interface SourceImage {
  readonly image: string;
  readonly user: string;
  readonly channel: ChannelKind;
}

function at(image: string, verb = ''): string {
  return `/images/${encodeURIComponent(image)}${verb}`;
}

export function isSnapshotImage(image: string): boolean {
  return image.startsWith(`${SNAPSHOTS}:`) || image.startsWith(`${FORKS}:`);
}

export class SnapshotImages {
  readonly #client: EngineClient;

  constructor(client: EngineClient) {
    this.#client = client;
  }

  async take(container: Container, spec: SnapshotSpec, signal: AbortSignal): Promise<TakenSnapshot> {
    const image = this.#nameOf(spec);
    if ((await this.find(image, signal)) === null) {
      await this.#commit(container, image, { owner: spec.owner, snapshot: spec.snapshotId }, signal);
    }
    return { ref: { image }, sizeBytes: await this.#size(image, signal) };
  }

  /** Commits the image for a fork; it loses its name once the fork exists. */
  async takeForFork(container: Container, name: string, owner: string, signal: AbortSignal): Promise<string> {
    const image = `${FORKS}:${doorOf(name)}`;
    await this.#commit(container, image, { owner, snapshot: name }, signal);
    return image;
  }

  async find(
    image: string,
    signal?: AbortSignal,
  ): Promise<(SourceImage & { readonly owner: string }) | null> {
    try {
      const { Config } = await this.#client.call(
        Image,
        'GET',
        at(image, '/json'),
        signal === undefined ? {} : { signal },
      );
      const labels = Config?.Labels ?? {};
      if (labels[LABEL.kind] !== 'snapshot') return null;
      return {
        image,
        user: labels[LABEL.prepared] ?? '',
        channel: channelIn(labels[LABEL.channel]),
        owner: labels[LABEL.owner] ?? '',
      };
    } catch (error) {
      if (isMissing(error)) return null;
      throw error;
    }
  }

  async *list(owner: string, signal: AbortSignal): AsyncGenerator<OwnedSnapshot> {
    const filters = { label: [`${LABEL.owner}=${owner}`, `${LABEL.kind}=snapshot`] };
    const all = await this.#client.call(ImageList, 'GET', '/images/json', {
      query: { filters: JSON.stringify(filters) },
      signal,
    });
    for (const { Labels, RepoTags, Created: seconds } of all) {
      const snapshotId = Labels[LABEL.snapshot] ?? '';
      const tag = RepoTags?.find((name) => name.endsWith(`${SNAPSHOTS}:${snapshotId}`));
      if (snapshotId === '' || tag === undefined || Labels[LABEL.owner] !== owner) continue;
      yield { snapshotId, createdAt: seconds * 1000, parts: [`image ${tag}`] };
    }
  }

  async delete(spec: SnapshotSpec, signal: AbortSignal): Promise<void> {
    const image = this.#nameOf(spec);
    if ((await this.find(image, signal))?.owner !== spec.owner) return;
    await this.forget(image);
    await this.collect(spec.owner);
  }

  /** Removes the name; containers keep the layers they are made of. */
  async forget(image: string): Promise<void> {
    try {
      // Podman would also remove the containers made from it.
      if (this.#client.isPodman)
        await this.#client.send('POST', `/libpod/images/${encodeURIComponent(image)}/untag`);
      else await this.#client.send('DELETE', at(image), { query: { force: 'true' } });
    } catch (error) {
      if (!isMissing(error) && !isConflict(error)) throw error;
    }
  }

  /** Removes images without a name, as far as no container needs them. */
  async collect(owner: string): Promise<void> {
    const filters = { dangling: ['true'], label: [`${LABEL.owner}=${owner}`, `${LABEL.kind}=snapshot`] };
    const all = await this.#client.call(ImageList, 'GET', '/images/json', {
      query: { filters: JSON.stringify(filters) },
    });
    for (const { Id } of all) {
      await this.#client.send('DELETE', at(Id)).catch((error: unknown) => {
        if (!isMissing(error) && !isConflict(error)) throw error;
      });
    }
  }

  #nameOf({ snapshotId }: SnapshotSpec): string {
    if (/^[\w.-]{1,128}$/.test(snapshotId)) return `${SNAPSHOTS}:${snapshotId}`;
    throw new SandboxerError('SBX_INVALID_REQUEST', 'The name of the snapshot cannot be used.', {
      backend: BACKEND,
    });
  }

  async #commit(
    { Id, Config, HostConfig }: Container,
    image: string,
    { owner, snapshot }: { readonly owner: string; readonly snapshot: string },
    signal: AbortSignal,
  ): Promise<void> {
    if (HostConfig?.ReadonlyRootfs) {
      throw new SandboxerError('SBX_UNSUPPORTED', 'With a read-only root its files are in memory only.', {
        backend: BACKEND,
        creation: 'not_created',
        remedy: 'Leave out read_only_root for sandboxes that are to be kept.',
      });
    }
    const [repo = '', tag = ''] = image.split(':');
    const labels = {
      [LABEL.owner]: owner,
      [LABEL.kind]: 'snapshot',
      [LABEL.snapshot]: snapshot,
      [LABEL.prepared]: Config.User,
    };
    await this.#client.call(Created.partial(), 'POST', '/commit', {
      query: { container: Id, repo, tag, pause: 'true', ...labelChanges(labels, this.#client.isPodman) },
      body: { Labels: { ...Config.Labels, ...labels } },
      signal,
      timeoutMs: COMMIT_MS,
    });
  }

  async #size(image: string, signal: AbortSignal): Promise<number | null> {
    const [top] = await this.#client.call(History, 'GET', at(image, '/history'), { signal });
    return top?.Size ?? null;
  }
}
