/** Layers: sealed disks, written once, shared by all sandboxes and images made from them, and removed with the last of those. */
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import type { Layout } from './layout.ts';
import { readRecord } from './record.ts';
import { RootFsShape } from './root-fs.ts';
import { writeLasting, writeWhole } from './whole-file.ts';

const SnapshotRecord = z.strictObject({
  version: z.literal(1),
  snapshotId: z.string(),
  owner: z.string(),
  name: z.string().nullable(),
  createdAt: z.number(),
  ...RootFsShape,
  sizeBytes: z.number().nullable(),
});
export type SnapshotRecord = z.infer<typeof SnapshotRecord>;

function names(path: string): string[] {
  try {
    return readdirSync(path);
  } catch {
    return [];
  }
}

/** Returns the layers of a record. An unreadable record protects only itself from removal. */
function layersIn(path: string): readonly string[] {
  try {
    return z.object({ layers: z.array(z.string()) }).parse(JSON.parse(readFileSync(path, 'utf8'))).layers;
  } catch {
    return [];
  }
}

export class Layers {
  readonly #layout: Layout;
  /** Layers that exist, and are not yet in any record. */
  readonly #fresh = new Set<string>();

  constructor(layout: Layout) {
    this.#layout = layout;
  }

  /** Returns the path of the next layer, relative to the base. It is safe from `unused` until `settled`. */
  next(): string {
    const name = `${Date.now().toString(36)}-${randomBytes(6).toString('hex')}`;
    mkdirSync(join(this.#layout.layers, name), { recursive: true, mode: 0o700 });
    this.#fresh.add(name);
    return `layers/${name}/fs`;
  }

  /** Returns an existing layer; it is safe from `unused` until `settled`. */
  find(matches: (layer: string) => boolean): string | null {
    for (const name of names(this.#layout.layers)) {
      const plain = `layers/${name}/fs`;
      const layer = existsSync(join(this.#layout.base, plain)) ? plain : `layers/${name}/disk/upper`;
      if (!matches(layer)) continue;
      this.#fresh.add(name);
      return layer;
    }
    return null;
  }

  /** Returns the layer with this content, and whether it exists already. It is safe from `unused` until `settled`. */
  claimByContent(digest: string, marks: boolean): { layer: string; exists: boolean } {
    const name = `${marks ? 'layer' : 'tree'}-${digest.replace(/^sha256:/, '')}`;
    this.#fresh.add(name);
    const layer = `layers/${name}/fs`;
    return { layer, exists: existsSync(join(this.#layout.base, layer)) };
  }

  settled(layer: string): void {
    this.#fresh.delete(layer.split('/')[1] ?? '');
  }

  readSnapshot(snapshotId: string): SnapshotRecord | null {
    try {
      return SnapshotRecord.parse(JSON.parse(readFileSync(this.#layout.snapshot(snapshotId), 'utf8')));
    } catch {
      return null;
    }
  }

  async writeSnapshot(record: SnapshotRecord): Promise<void> {
    await writeLasting(this.#layout.snapshot(record.snapshotId), JSON.stringify(record));
  }

  /** Notes the size of a snapshot that still exists. No flush: the size can be counted again. */
  noteSize(snapshotId: string, sizeBytes: number): void {
    const record = this.readSnapshot(snapshotId);
    if (record !== null)
      writeWhole(this.#layout.snapshot(snapshotId), JSON.stringify({ ...record, sizeBytes }));
  }

  removeSnapshot(snapshotId: string): void {
    rmSync(this.#layout.snapshot(snapshotId), { force: true });
  }

  /** Returns the directories of unused layers and skeletons, relative to the base. */
  unused(skeleton: string): string[] {
    const used = new Set([...this.#fresh].map((name) => `layers/${name}`).concat(skeleton));
    const note = (layers: readonly string[]) => {
      for (const layer of layers) used.add(layer.split('/').slice(0, 2).join('/'));
    };
    for (const name of names(this.#layout.snapshots)) {
      const record = this.readSnapshot(name.replace(/\.json$/, ''));
      if (record !== null) note(record.layers);
    }
    for (const name of names(this.#layout.sandboxes)) {
      const record = readRecord(join(this.#layout.sandboxes, name, 'record.json'));
      if (record !== null) note(record.layers);
    }
    for (const name of names(this.#layout.images)) note(layersIn(join(this.#layout.images, name)));
    return ['layers', 'skeleton'].flatMap((kind) =>
      names(join(this.#layout.base, kind))
        .map((name) => `${kind}/${name}`)
        .filter((path) => !used.has(path)),
    );
  }
}
