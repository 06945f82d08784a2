/**
 * Content of layers, as hashes of their archives. The hash is computed after a layer was sealed, in the background, stored beside
 * it, and verified before the layer is first used by this process: a layer that has changed since is not used.
 */

import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { Mutex } from '../../../async/mutex.ts';
import { SandboxerError } from '../../../contract/errors/errors.ts';
import type { Engine } from '../engine/engine.ts';
import type { Layout } from '../state/layout.ts';
import { writeLasting } from '../state/whole-file.ts';
import { packedLayer } from './packed-layer.ts';

/** Most bytes that are hashed or exported: a file of holes can claim any size. */
export const MOST_BYTES = 64 * 2 ** 30;

const LayerContent = z.strictObject({ digest: z.string(), archiveBytes: z.number().int() });
export type LayerContent = z.infer<typeof LayerContent>;

export class LayerDigests {
  readonly #engine: Engine;
  readonly #layout: Layout;
  readonly #mutex = new Mutex();
  readonly #verified = new Set<string>();

  constructor(engine: Engine, layout: Layout) {
    this.#engine = engine;
    this.#layout = layout;
  }

  /** Returns the content when it was sealed; `null` when that was not computed. */
  known(layer: string): LayerContent | null {
    try {
      return LayerContent.parse(JSON.parse(readFileSync(this.#path(layer), 'utf8')));
    } catch {
      return null;
    }
  }

  /** Computes the content and stores it. Throws when that is impossible: names that no archive can have, or too many bytes. */
  async seal(layer: string): Promise<LayerContent> {
    return await this.#mutex.run(async () => {
      const known = this.known(layer);
      if (known !== null) return known;
      const found = await this.#find(layer);
      await this.keep(layer, found);
      return found;
    });
  }

  /** Stores the content of a layer that came as an archive. */
  async keep(layer: string, content: LayerContent): Promise<void> {
    await writeLasting(this.#path(layer), JSON.stringify(content));
    this.#verified.add(layer);
  }

  /** Throws when the content is not the sealed one. Reads every byte, once for each layer and process. */
  async verify(layer: string): Promise<void> {
    if (this.#verified.has(layer)) return;
    await this.#mutex.run(async () => {
      const known = this.known(layer);
      if (known !== null && (await this.#find(layer)).digest !== known.digest) {
        throw new SandboxerError('SBX_SNAPSHOT_DAMAGED', 'Its files are not those that were kept.', {
          backend: 'ext.local',
          creation: 'not_created',
        });
      }
      this.#verified.add(layer);
    });
  }

  async #find(layer: string): Promise<LayerContent> {
    const hash = createHash('sha256');
    let archiveBytes = 0;
    for await (const chunk of packedLayer(this.#engine, this.#layout, layer, MOST_BYTES)) {
      hash.update(chunk);
      archiveBytes += chunk.length;
    }
    return { digest: `sha256:${hash.digest('hex')}`, archiveBytes };
  }

  #path(layer: string): string {
    return join(this.#layout.base, ...layer.split('/').slice(0, 2), 'content.json');
  }
}

/** Returns one digest for the whole content of a chain of layers. */
export function chainDigest(digests: readonly string[], host: readonly string[]): string {
  const hash = createHash('sha256').update(JSON.stringify([digests, host]));
  return `sha256:${hash.digest('hex')}`;
}
