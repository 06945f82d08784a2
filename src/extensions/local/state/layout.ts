import { createHash } from 'node:crypto';
import { join } from 'node:path';

const PLAIN = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,119}$/;

/** Paths below `<state_dir>/local`. Names that go to the spawner are relative to it. */
export class Layout {
  readonly base: string;

  constructor(base: string) {
    this.base = base;
  }

  /** Returns the name of an attempt's directory and container. */
  name(attemptId: string): string {
    if (PLAIN.test(attemptId)) return attemptId;
    return `h-${createHash('sha256').update(attemptId).digest('hex').slice(0, 40)}`;
  }

  get sandboxes(): string {
    return join(this.base, 'sandboxes');
  }

  sandbox(attemptId: string, ...rest: string[]): string {
    return join(this.sandboxes, this.name(attemptId), ...rest);
  }

  get layers(): string {
    return join(this.base, 'layers');
  }

  get snapshots(): string {
    return join(this.base, 'snapshots');
  }

  snapshot(snapshotId: string): string {
    return join(this.snapshots, `${this.name(snapshotId)}.json`);
  }

  get images(): string {
    return join(this.base, 'images');
  }

  image(imageId: string): string {
    return join(this.images, `${this.name(imageId)}.json`);
  }

  volume(volumeId: string): string {
    return join(this.base, 'volumes', this.name(volumeId));
  }

  /** Directory of uploads that become layers. */
  get incoming(): string {
    return join(this.base, 'incoming');
  }

  /** The name of its control groups: one for each directory. */
  get group(): string {
    return `sandboxer-${createHash('sha256').update(this.base).digest('hex').slice(0, 10)}`;
  }

  get control(): string {
    return join(this.base, 'spawner.sock');
  }
}
