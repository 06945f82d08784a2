import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { SandboxerError } from '../../../contract/errors/errors.ts';
import type { Engine } from '../engine/engine.ts';
import type { Layout } from '../state/layout.ts';
import type { SandboxRecord } from '../state/record.ts';
import { readRecord, writeRecord } from '../state/record.ts';

/** Records of the sandboxes of one state directory: each is read once, as no other process writes it. */
export class Records {
  readonly #layout: Layout;
  readonly #engine: Engine;
  /** Records by the name of the directory, which can be removed by the spawner. */
  readonly #known = new Map<string, SandboxRecord>();

  constructor(layout: Layout, engine: Engine) {
    this.#layout = layout;
    this.#engine = engine;
  }

  of(attemptId: string): SandboxRecord | null {
    const name = this.#layout.name(attemptId);
    const known = this.#known.get(name);
    // The spawner sends an event when a directory is removed; without a connection the file must be read again.
    if (known !== undefined && this.#engine.hears) return known;
    const path = this.#layout.sandbox(attemptId, 'record.json');
    if (!existsSync(path)) {
      this.#known.delete(name);
      return null;
    }
    if (known !== undefined) return known;
    const record = readRecord(path);
    if (record?.attemptId !== attemptId) return null;
    this.#known.set(name, record);
    return record;
  }

  /** Reads the record from the disk, where the spawner may have added to it. */
  reread(attemptId: string): SandboxRecord | null {
    this.#known.delete(this.#layout.name(attemptId));
    return this.of(attemptId);
  }

  /** Writes the record. */
  async update(record: SandboxRecord): Promise<void> {
    await writeRecord(this.#layout.sandbox(record.attemptId, 'record.json'), record);
    this.keep(record);
  }

  /** Caches a record that is written, or as good as written. */
  keep(record: SandboxRecord): void {
    this.#known.set(this.#layout.name(record.attemptId), record);
  }

  forget(name: string): void {
    this.#known.delete(name);
  }

  /** Forgets the cache: events of removals were missed meanwhile. */
  forgetAll(): void {
    this.#known.clear();
  }

  /** Returns the directories of sandboxes, also of those without a record yet. */
  directories(): string[] {
    try {
      return readdirSync(this.#layout.sandboxes);
    } catch {
      return [];
    }
  }

  inDirectory(name: string): SandboxRecord | null {
    return readRecord(join(this.#layout.sandboxes, name, 'record.json'));
  }

  /** Throws where a sandbox of this state directory has the volume mounted. */
  requireUnmounted(volumeId: string): void {
    const isMounted = this.all().some(({ volumes }) => volumes.some((one) => one.volumeId === volumeId));
    if (!isMounted) return;
    throw new SandboxerError('SBX_CONFLICT', 'A sandbox on this machine has the volume mounted.', {
      backend: 'ext.local',
      remedy: 'Destroy the sandbox first.',
    });
  }

  all(): SandboxRecord[] {
    return this.directories().flatMap((name) => this.inDirectory(name) ?? []);
  }
}
