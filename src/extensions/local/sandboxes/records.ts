import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { SandboxerError } from '../../../contract/errors/errors.ts';
import type { Engine } from '../engine/engine.ts';
import type { Layout } from '../state/layout.ts';
import type { SandboxRecord } from '../state/record.ts';
import { readRecord, writeRecord } from '../state/record.ts';

/** What is known of each sandbox of one state directory: read once, as nobody else writes it. */
export class Records {
  readonly #layout: Layout;
  readonly #engine: Engine;
  /** By the name of the directory, which can go away by itself. */
  readonly #known = new Map<string, SandboxRecord>();

  constructor(layout: Layout, engine: Engine) {
    this.#layout = layout;
    this.#engine = engine;
  }

  of(attemptId: string): SandboxRecord | null {
    const name = this.#layout.name(attemptId);
    const known = this.#known.get(name);
    // The spawner says when one goes; while there is none, somebody has to look.
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

  /** As it is on the disk, where the spawner may have said more of it. */
  reread(attemptId: string): SandboxRecord | null {
    this.#known.delete(this.#layout.name(attemptId));
    return this.of(attemptId);
  }

  /** Writes what is known of it now. */
  async update(record: SandboxRecord): Promise<void> {
    await writeRecord(this.#layout.sandbox(record.attemptId, 'record.json'), record);
    this.keep(record);
  }

  /** It was written, or is as good as that. */
  keep(record: SandboxRecord): void {
    this.#known.set(this.#layout.name(record.attemptId), record);
  }

  forget(name: string): void {
    this.#known.delete(name);
  }

  /** Nobody has told us what went meanwhile. */
  forgetAll(): void {
    this.#known.clear();
  }

  /** The directories of sandboxes, also of those that have no record yet. */
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
