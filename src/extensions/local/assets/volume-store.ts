/** Directories that outlive sandboxes, each with the stamp of the installation that made it. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { SandboxerError } from '../../../contract/errors/errors.ts';
import type { VolumeSpec } from '../../../core/ports/extension.ts';
import type { Engine } from '../engine/engine.ts';
import { failed } from '../engine/failure.ts';
import type { HostFacts } from '../host/host-facts.ts';
import type { Layout } from '../state/layout.ts';
import { writeLasting } from '../state/whole-file.ts';

export class VolumeStore {
  readonly #layout: Layout;
  readonly #engine: Engine;
  readonly #facts: HostFacts;

  constructor(layout: Layout, engine: Engine, facts: HostFacts) {
    this.#layout = layout;
    this.#engine = engine;
    this.#facts = facts;
  }

  async create({ volumeId, owner, sizeMb }: VolumeSpec): Promise<void> {
    if (sizeMb !== null && this.#facts.diskMaker === null) {
      throw new SandboxerError('SBX_UNSUPPORTED', 'The size of a volume cannot be limited on this machine.', {
        backend: 'ext.local',
        field: 'size_mb',
        remedy: 'Leave the size out, or run the server as root with loop devices and mkfs.ext4.',
      });
    }
    if (sizeMb !== null) this.#engine.blanks.refuseTooLarge(sizeMb, 'size_mb');
    const id = this.#layout.name(volumeId);
    try {
      // The spawner makes the directory of the blanks.
      await this.#engine.machinery();
      const leastMb = sizeMb === null ? null : Math.max(16, sizeMb);
      await this.#engine.blanks.with(leastMb, (disk) => this.#engine.call('volume', { id, ...disk }));
      await this.#engine.flushed();
    } catch (error) {
      throw failed(error);
    }
    await writeLasting(join(this.#layout.volume(volumeId), 'owner'), owner);
  }

  /** Throws when the volume of a sandbox is not here. */
  require(volumeId: string | null, name: string, owner: string): void {
    if (volumeId !== null && this.#ownerOf(volumeId) === owner) return;
    throw new SandboxerError('SBX_NOT_FOUND', `The volume ${name} is not on this machine.`, {
      backend: 'ext.local',
      creation: 'not_created',
      remedy: `Make it first: sandboxer volumes create ${name}.`,
    });
  }

  async remove(volumeId: string, owner: string): Promise<void> {
    if (!existsSync(this.#layout.volume(volumeId))) return;
    const stamped = this.#ownerOf(volumeId);
    if (stamped !== null && stamped !== owner) return;
    await this.#engine
      .call('discard', { path: `volumes/${this.#layout.name(volumeId)}` })
      .catch((error: unknown) => {
        throw failed(error);
      });
  }

  #ownerOf(volumeId: string): string | null {
    try {
      return readFileSync(join(this.#layout.volume(volumeId), 'owner'), 'utf8');
    } catch {
      return null;
    }
  }
}
