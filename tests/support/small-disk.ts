/** A disk of 900 MiB, mounted for one command in a namespace of its own; the command has its temporary directory there. */
import type { SpawnSyncReturns } from 'node:child_process';
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const SIZE = '900M';

export class SmallDisk {
  readonly #folder = mkdtempSync(join(tmpdir(), 'sandboxer-disk-'));
  readonly #scheduler: string | null;

  /** `scheduler`: the one of the disk; otherwise the kernel's choice. */
  constructor(scheduler: string | null = null) {
    this.#scheduler = scheduler;
  }

  /** Why there is none here, or `null`. */
  whyNot(): string | null {
    if (process.getuid?.() !== 0) return 'not root';
    const { status, stderr } = this.run('true');
    return status === 0 ? null : `no disk can be mounted here: ${stderr.trim()}`;
  }

  run(command: string, timeoutMs = 300_000): SpawnSyncReturns<string> {
    const [image, point] = [join(this.#folder, 'image'), join(this.#folder, 'point')];
    mkdirSync(point, { recursive: true });
    // The kernel detaches the device at its last unmount.
    const script = `set -e; truncate -s ${SIZE} ${image}; mkfs.ext4 -q -F ${image}
      disk=$(losetup -f --show ${image}); trap 'losetup -d $disk' EXIT
      ${this.#scheduler === null ? '' : `echo ${this.#scheduler} >/sys/block/\${disk#/dev/}/queue/scheduler`}
      mount $disk ${point}; trap - EXIT; losetup -d $disk; exec ${command}`;
    const result = spawnSync('unshare', ['--mount', '--propagation', 'private', 'sh', '-c', script], {
      encoding: 'utf8',
      env: { ...process.env, PATH: `${process.env.PATH}:/sbin:/usr/sbin`, TMPDIR: point },
      timeout: timeoutMs,
    });
    rmSync(image, { force: true });
    return result;
  }

  /** Runs a TypeScript file and parses what it prints as JSON. */
  json(file: string, ...words: readonly (string | number)[]): Record<string, unknown> {
    const { status, stdout, stderr } = this.run(`${process.execPath} ${file} ${words.join(' ')}`);
    if (status !== 0) throw new Error(`${file} ended with ${status}: ${stderr}`);
    return JSON.parse(stdout);
  }

  remove(): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
