import { createHash, randomBytes } from 'node:crypto';
import { createReadStream } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { mkdir, open, readdir, rename, rm, stat, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { SandboxerError } from '../contract/errors/errors.ts';
import type { StagedArchive, UploadLimits } from '../core/ports/inputs.ts';
import { checkArchive } from './check-archive.ts';

const KEPT = /^(upl_[0-9a-f]{40})\.tar$/;
const LINES_BYTES = 65_536;

function gone(): SandboxerError {
  return new SandboxerError('SBX_NOT_FOUND', 'The upload is no longer there.', {
    remedy: 'Upload it again: uploads that no sandbox has expire.',
  });
}

/**
 * Stores archives as files of one private directory: `upl_….tar` and `upl_….entries`, its table of contents. An archive that is
 * being received has a temporary name; it is removed at the next start.
 */
export class BlobStore {
  readonly #directory: string;
  readonly #limits: UploadLimits;
  /** The latest operation on each id; operations on one id run one after another. */
  readonly #turns = new Map<string, Promise<unknown>>();
  #ready: Promise<void> | null = null;

  constructor(directory: string, limits: UploadLimits) {
    this.#directory = directory;
    this.#limits = limits;
  }

  /** Runs `use` with a temporary directory of its own. */
  async scratch<T>(use: (directory: string) => Promise<T>): Promise<T> {
    await this.#prepare();
    const directory = this.#temporary();
    await mkdir(directory, { mode: 0o700 });
    try {
      return await use(directory);
    } finally {
      await rm(directory, { recursive: true, force: true, maxRetries: 3 });
    }
  }

  async stage(archive: AsyncIterable<Uint8Array>, signal?: AbortSignal): Promise<StagedArchive> {
    await this.#prepare();
    const path = this.#temporary();
    try {
      const received = await this.#receive(archive, path, signal);
      return {
        ...received,
        keep: (id, commit) => this.#inTurn(id, () => this.#keep(id, path, commit)),
        discard: () => this.#remove(path),
      };
    } catch (error) {
      await this.#remove(path);
      throw error;
    }
  }

  async open(id: string): Promise<AsyncIterable<Uint8Array>> {
    return this.#reader(this.#path(id, 'tar'));
  }

  async entries(id: string): Promise<AsyncIterable<Uint8Array>> {
    return this.#reader(this.#path(id, 'entries'));
  }

  async drop(id: string, commit: () => Promise<boolean>): Promise<void> {
    await this.#inTurn(id, async () => {
      if (!(await commit())) return;
      await rm(this.#path(id, 'tar'), { force: true });
      await rm(this.#path(id, 'entries'), { force: true });
    });
  }

  async kept(before: number): Promise<readonly string[]> {
    await this.#prepare();
    const ids: string[] = [];
    for (const name of await readdir(this.#directory)) {
      const id = KEPT.exec(name)?.[1];
      if (id === undefined) continue;
      const found = await stat(join(this.#directory, name)).catch(() => null);
      if (found && found.mtimeMs < before) ids.push(id);
    }
    return ids;
  }

  /** Removes what the last process left unfinished: no process will complete it. */
  #prepare(): Promise<void> {
    this.#ready ??= (async () => {
      await mkdir(this.#directory, { recursive: true, mode: 0o700 });
      for (const name of await readdir(this.#directory)) {
        if (name.startsWith('tmp-')) await rm(join(this.#directory, name), { recursive: true, force: true });
      }
    })();
    return this.#ready;
  }

  #temporary(): string {
    return join(this.#directory, `tmp-${randomBytes(12).toString('hex')}`);
  }

  #path(id: string, kind: 'tar' | 'entries'): string {
    if (!KEPT.test(`${id}.tar`)) throw gone();
    return join(this.#directory, `${id}.${kind}`);
  }

  async #reader(path: string): Promise<AsyncIterable<Uint8Array>> {
    const file = await open(path, 'r').catch(() => null);
    if (file === null) throw gone();
    return createReadStream(path, { fd: file, highWaterMark: 262_144 });
  }

  async #receive(archive: AsyncIterable<Uint8Array>, path: string, signal: AbortSignal | undefined) {
    const file = await open(path, 'wx', 0o600);
    const table = await open(`${path}.entries`, 'wx', 0o600);
    const hash = createHash('sha256');
    const most = this.#limits.uploadBytes;
    let sizeBytes = 0;
    async function* copied(): AsyncGenerator<Uint8Array> {
      for await (const part of archive) {
        signal?.throwIfAborted();
        sizeBytes += part.length;
        if (sizeBytes > most)
          throw new SandboxerError('SBX_PAYLOAD_TOO_LARGE', `An upload has at most ${most} bytes.`);
        hash.update(part);
        await file.write(part);
        yield part;
      }
    }
    try {
      const entries = await this.#tabulate(copied(), table);
      await file.sync();
      await table.sync();
      return { digest: `sha256:${hash.digest('hex')}`, sizeBytes, entries };
    } finally {
      await file.close();
      await table.close();
    }
  }

  async #tabulate(archive: AsyncIterable<Uint8Array>, table: FileHandle): Promise<number> {
    let entries = 0;
    let lines = '';
    for await (const entry of checkArchive(archive, this.#limits.uploadEntries)) {
      entries += 1;
      lines += `${JSON.stringify(entry)}\n`;
      if (lines.length < LINES_BYTES) continue;
      await table.write(lines);
      lines = '';
    }
    await table.write(lines);
    return entries;
  }

  /** The table first: where the archive is, its table is. Kept again, it counts as new. */
  async #keep<T>(id: string, path: string, commit: () => Promise<T>): Promise<T> {
    const target = this.#path(id, 'tar');
    const there = await stat(target).catch(() => null);
    if (there) await utimes(target, new Date(), new Date());
    else {
      await rename(`${path}.entries`, this.#path(id, 'entries'));
      await rename(path, target);
      const directory = await open(this.#directory, 'r');
      await directory.sync().finally(() => directory.close());
    }
    try {
      return await commit();
    } catch (error) {
      if (!there) {
        await rm(target, { force: true });
        await rm(this.#path(id, 'entries'), { force: true });
      }
      throw error;
    }
  }

  async #remove(path: string): Promise<void> {
    await rm(path, { force: true });
    await rm(`${path}.entries`, { force: true });
  }

  async #inTurn<T>(id: string, work: () => Promise<T>): Promise<T> {
    const before = this.#turns.get(id) ?? Promise.resolve();
    const turn = before.then(work, work);
    const settled = turn.then(
      () => {},
      () => {},
    );
    this.#turns.set(id, settled);
    try {
      return await turn;
    } finally {
      if (this.#turns.get(id) === settled) this.#turns.delete(id);
    }
  }
}
