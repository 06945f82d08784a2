/** Turns the image of a recipe into one that a sandbox can be started from. */

import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { KeyedMutex } from '../../../async/keyed-mutex.ts';
import { SandboxerError } from '../../../contract/errors/errors.ts';
import type { ExtensionContext, Progress } from '../../../core/ports/extension.ts';
import type { ChannelChoice } from '../channel/channel-choice.ts';
import { lesserOf } from '../channel/channel-choice.ts';
import type { ChannelKind } from '../containers/container-config.ts';
import { LABEL, labelChanges } from '../containers/labels.ts';
import type { DockerOptions } from '../containers/options.ts';
import type { EngineClient } from '../engine/engine-client.ts';
import { BACKEND, EngineError, failed, isMissing } from '../engine/engine-error.ts';
import { Created, Image } from '../engine/engine-replies.ts';
import { parseImageReference, requireAllowed, showImageReference } from './image-reference.ts';
import { preparedTree, userOfImage } from './prepared-tree.ts';
import { pullImage } from './pull-image.ts';

export interface ReadyImage {
  /** The image that containers are made from. */
  readonly image: string;
  readonly user: string;
  /** The wanted channel, unless the agent cannot run in this image. */
  readonly channel: ChannelKind;
}

const PREPARED = 'sandboxer-prepared';

/** How the agent is placed in an image. */
export interface AgentFit {
  readonly channel: ChannelKind;
  /** Whether every user inside may read the agent's program: needed by a kernel other than the machine's. */
  readonly readable: boolean;
}

export class Images {
  readonly #client: EngineClient;
  readonly #options: DockerOptions;
  readonly #agentPath: string;
  readonly #choice: ChannelChoice;
  readonly #mutex = new KeyedMutex();
  readonly #ready = new Map<string, ReadyImage>();
  /** Listeners for the progress of an image that is being fetched, once for all of them. */
  readonly #waiting = new Map<string, Set<(progress: Progress) => void>>();
  readonly #lowered = new Map<string, ChannelKind>();
  #agentDigest: string | null = null;

  constructor(client: EngineClient, options: DockerOptions, agentPath: string, choice: ChannelChoice) {
    this.#choice = choice;
    this.#client = client;
    this.#options = options;
    this.#agentPath = agentPath;
  }

  /** Checks the policy, fetches a missing image, and makes the directory that a sandbox works in. */
  async ready(image: string, wanted: AgentFit, ctx: ExtensionContext): Promise<ReadyImage> {
    const fit = { ...wanted, channel: lesserOf(wanted.channel, this.#lowered.get(image) ?? 'call') };
    const reference = parseImageReference(this.#named(image));
    if (image !== 'host') requireAllowed(reference, this.#options.images);
    const name = showImageReference(reference);
    const key = `${fit.channel} ${fit.readable} ${name}`;
    const known = this.#ready.get(key);
    if (known !== undefined && this.#options.images.pull !== 'always') return known;
    return await this.#watching(name, ctx, () =>
      this.#mutex.run(key, async () => {
        const again = this.#ready.get(key);
        if (again !== undefined && this.#options.images.pull !== 'always') return again;
        const found = await this.#fetch(name, reference.registry, ctx);
        const ready = await this.prepare(found, fit, ctx.signal);
        this.#ready.set(key, ready);
        return ready;
      }),
    );
  }

  /** Lowers the channel of an image with which a better one was seen to fail. */
  lower(image: string, channel: ChannelKind): void {
    this.#lowered.set(image, channel);
  }

  /** Forgets that the image was there: the next request checks again. */
  forget(): void {
    this.#ready.clear();
  }

  /**
   * Returns the image with a work directory that its user may write to, and with the agent where that cannot be mounted. Made
   * once for each image and found again by its name.
   */
  async prepare(base: Image, fit: AgentFit, signal: AbortSignal): Promise<ReadyImage> {
    this.#requireLinux(base);
    const channel = this.#choice.fits(base.Architecture) ? fit.channel : 'exec';
    const agent = channel === 'relay' ? this.#digestOfAgent() + (fit.readable ? ' readable' : '') : '';
    const key = createHash('sha256').update(`1 ${base.Id} ${agent}`).digest('hex').slice(0, 32);
    const name = `${PREPARED}:${key}`;
    const existing = await this.find(name, signal);
    const known = existing?.Config?.Labels[LABEL.prepared];
    if (known !== undefined && /^\d+:\d+$/.test(known)) return { image: name, user: known, channel };
    return await this.#make(base, { ...fit, channel }, key, signal);
  }

  async find(name: string, signal?: AbortSignal): Promise<Image | null> {
    try {
      const path = `/images/${encodeURIComponent(name)}/json`;
      return await this.#client.call(Image, 'GET', path, signal === undefined ? {} : { signal });
    } catch (error) {
      if (isMissing(error)) return null;
      throw error;
    }
  }

  async #watching<T>(name: string, { progress }: ExtensionContext, work: () => Promise<T>): Promise<T> {
    if (progress === undefined) return await work();
    const listeners = this.#waiting.get(name) ?? new Set();
    this.#waiting.set(name, listeners.add(progress));
    try {
      return await work();
    } finally {
      listeners.delete(progress);
      if (listeners.size === 0 && this.#waiting.get(name) === listeners) this.#waiting.delete(name);
    }
  }

  #named(image: string): string {
    if (image !== 'host') return image;
    if (this.#options.defaultImage !== null) return this.#options.defaultImage;
    throw new SandboxerError('SBX_UNSUPPORTED', 'There is no image "host" here.', {
      backend: BACKEND,
      creation: 'not_created',
      remedy: 'Name an image in the profile, or set extensions.docker.default_image.',
    });
  }

  async #fetch(name: string, registry: string | null, ctx: ExtensionContext): Promise<Image> {
    const { pull, logins } = this.#options.images;
    const here = pull === 'always' ? null : await this.find(name, ctx.signal);
    if (here !== null) return here;
    if (pull === 'never') {
      throw new SandboxerError('SBX_IMAGE_UNAVAILABLE', `The engine does not have the image ${name}.`, {
        backend: BACKEND,
        creation: 'not_created',
        remedy: `Bring it there (docker pull ${name}), or set extensions.docker.images.pull to "missing".`,
      });
    }
    const from = { registry, login: logins[registry ?? ''] ?? null };
    await pullImage(this.#client, name, from, {
      context: ctx,
      tell: (progress) => {
        for (const tell of this.#waiting.get(name) ?? []) tell(progress);
      },
    });
    const pulled = await this.find(name, ctx.signal);
    if (pulled !== null) return pulled;
    throw new SandboxerError('SBX_EXTENSION_FAILED', `The engine pulled ${name} and does not have it.`, {
      backend: BACKEND,
      creation: 'not_created',
    });
  }

  #requireLinux({ Os }: Image): void {
    if (Os === 'linux') return;
    throw new SandboxerError('SBX_UNSUPPORTED', `An image for ${Os.slice(0, 40)} cannot be used.`, {
      backend: BACKEND,
      creation: 'not_created',
      remedy: 'Choose an image for Linux.',
    });
  }

  #digestOfAgent(): string {
    this.#agentDigest ??= createHash('sha256').update(readFileSync(this.#agentPath)).digest('hex');
    return this.#agentDigest;
  }

  async #make(
    base: Image,
    { channel, readable }: AgentFit,
    key: string,
    signal: AbortSignal,
  ): Promise<ReadyImage> {
    const labels = { [LABEL.kind]: 'preparing' };
    const { Id } = await this.#client.call(Created, 'POST', '/containers/create', {
      body: { Image: base.Id, Cmd: ['/'], Labels: labels, HostConfig: { NetworkMode: 'none' } },
      signal,
    });
    try {
      const user = await userOfImage(this.#client, Id, base.Config?.User ?? '', signal);
      const agent = channel === 'relay' ? readFileSync(this.#agentPath) : null;
      await this.#client.send('PUT', `/containers/${Id}/archive`, {
        query: { path: '/' },
        stream: preparedTree(user, agent, readable),
        signal,
      });
      const made = { [LABEL.kind]: 'prepared', [LABEL.prepared]: user };
      const changes = labelChanges(made, this.#client.isPodman);
      await this.#client.call(Created.partial(), 'POST', '/commit', {
        query: { container: Id, repo: PREPARED, tag: key, ...changes },
        body: { Labels: made },
        signal,
      });
      return { image: `${PREPARED}:${key}`, user, channel };
    } catch (error) {
      if (error instanceof EngineError) throw failed(error, { creation: 'not_created' });
      throw error;
    } finally {
      await this.#client
        .send('DELETE', `/containers/${Id}`, { query: { force: 'true', v: 'true' } })
        .catch(() => {});
    }
  }
}
