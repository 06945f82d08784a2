import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import {
  chmodSync,
  closeSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { FileChange } from '../../../src/contract/sandboxes/files.ts';
import type { LeftOut } from '../../../src/core/ports/session.ts';
import type { AgentSession } from '../../../src/extensions/shared/agent-session/agent-session.ts';
import { archiveOf, entriesOf } from '../../../src/testing/conformance/tar-archive.ts';
import { bytesFrom, bytesOf, eventually } from './programs.ts';
import type { RunningAgent } from './running-agent.ts';
import { isRoot, startAgent } from './running-agent.ts';

let agent: RunningAgent;
let session: AgentSession;

beforeAll(async () => {
  agent = await startAgent();
  session = await agent.connect();
});
afterAll(async () => {
  await agent.stop();
});

const at = (path: string) => join(agent.work, path);
const python = spawnSync('python3', ['-c', '']).status === 0;
const refused = { code: 'SBX_PATH_REFUSED' };

describe('single files', () => {
  it('single files that must be in memory are written nowhere else, whatever leads there', async () => {
    const type = (path: string) =>
      execFileSync('stat', ['-f', '-c', '%T', path], { encoding: 'utf8' }).trim();
    const memory = mkdtempSync('/dev/shm/sbx-agent-');
    chmodSync(memory, 0o777);
    const toMemory = true;
    await session.files.write(join(memory, 'kept'), bytesFrom('secret'), { toMemory });
    expect([type(memory), readFileSync(join(memory, 'kept'), 'utf8')]).toEqual(['tmpfs', 'secret']);
    rmSync(memory, { recursive: true });
    if (type(agent.work) === 'tmpfs') return;
    mkdirSync(at('disk'));
    chmodSync(at('disk'), 0o777);
    symlinkSync(at('disk'), at('link'));
    for (const path of ['disk/secret', 'link/secret', 'disk/new/secret']) {
      await expect(session.files.write(at(path), bytesFrom('secret'), { toMemory })).rejects.toMatchObject(
        refused,
      );
    }
    expect(readdirSync(at('disk'), { recursive: true })).toEqual(['new']);
  });

  it('single files are read from /proc, where none has a size', async () => {
    const { size, body } = await session.files.read('/proc/self/status');
    expect(size).toBe(0);
    expect((await bytesOf(body)).toString()).toContain('sandboxer-agent');
  });

  it('single files are refused when they are pipes, sockets or devices, without waiting for them', async () => {
    execFileSync('mkfifo', [at('pipe')]);
    await expect(session.files.read('pipe')).rejects.toMatchObject(refused);
    await expect(session.files.read('/dev/zero')).rejects.toMatchObject(refused);
  });

  it('single files do not take the place of a pipe, a socket or a device, whatever is written', async () => {
    execFileSync('mkfifo', [at('kept-pipe')]);
    symlinkSync('kept-pipe', at('to-pipe'));
    const listening = createServer().listen(at('kept-socket'));
    await once(listening, 'listening');
    const message = expect.stringContaining('it is not a regular file');
    for (const name of ['kept-pipe', 'to-pipe', 'kept-socket'])
      await expect(session.files.write(name, bytesFrom('x'))).rejects.toMatchObject({
        ...refused,
        message: expect.stringContaining(name),
        detail: message,
      });
    expect(lstatSync(at('kept-pipe')).isFIFO()).toBe(true);
    expect(lstatSync(at('kept-socket')).isSocket()).toBe(true);
    listening.close();
  });

  it.runIf(isRoot && python)(
    'single files that report no size and have no end are read to a bound',
    async () => {
      const script =
        'import ctypes, mmap, time; m = mmap.mmap(-1, 80 << 20); print(ctypes.addressof(ctypes.c_char.from_buffer(m)), flush=True); time.sleep(100)';
      const memory = spawn('python3', ['-c', script], { stdio: ['ignore', 'pipe', 'inherit'] });
      const [address] = await once(memory.stdout, 'data');
      const { size, body } = await session.files.read(`/proc/${memory.pid}/mem`, { offset: Number(address) });
      expect(size).toBe(0);
      let read = 0;
      const reading = (async () => {
        for await (const { length } of body) read += length;
      })();
      await expect(reading).rejects.toMatchObject({ ...refused, detail: expect.stringContaining('64 MiB') });
      expect(read).toBe(64 * 1_048_576);
      memory.kill('SIGKILL');
    },
  );

  it('single files are written through a link, and keep their mode when none is given', async () => {
    mkdirSync(at('real'));
    writeFileSync(at('real/file'), 'old', { mode: 0o600 });
    chmodSync(at('real/file'), 0o751);
    symlinkSync('real/file', at('to-real'));
    await session.files.write('to-real', bytesFrom('new'));
    expect(readlinkSync(at('to-real'))).toBe('real/file');
    expect(readFileSync(at('real/file'), 'utf8')).toBe('new');
    expect(lstatSync(at('real/file')).mode & 0o777).toBe(0o751);
    expect(readdirSync(at('real'))).toEqual(['file']);
  });

  it('single files leave nothing beside them when the connection is lost in the middle', async () => {
    const other = await agent.connect();
    mkdirSync(at('half'));
    const never = Promise.withResolvers<void>();
    const writing = other.files.write(
      'half/file',
      (async function* () {
        yield randomBytes(300_000);
        await never.promise;
      })(),
    );
    expect(await eventually(() => readdirSync(at('half')).length === 1)).toBe(true);
    await other.close();
    await expect(writing).rejects.toMatchObject({ code: 'SBX_EXTENSION_FAILED' });
    expect(await eventually(() => readdirSync(at('half')).length === 0)).toBe(true);
    never.resolve();
  });

  it('single files are refused at once when their place cannot be written, though the source would continue', async () => {
    writeFileSync(at('plain'), '');
    const endless = (async function* () {
      for (;;) yield Buffer.alloc(65_536);
    })();
    await expect(session.files.write('plain/inner', endless)).rejects.toMatchObject(refused);
  });

  it('single files are not begun when the signal has aborted, and given up when it does', async () => {
    const signal = AbortSignal.abort(new Error('given up'));
    await expect(session.files.stat('.', { signal })).rejects.toThrow('given up');
    const abort = new AbortController();
    const { body } = await session.files.read('/proc/self/status', { signal: abort.signal });
    abort.abort(new Error('given up'));
    await expect(bytesOf(body)).rejects.toThrow('given up');
  });

  it('single files can be listed by the thousand, and are cut where asked', async () => {
    mkdirSync(at('many'));
    for (let n = 0; n < 3000; n += 1) writeFileSync(at(`many/file-${n}-${'x'.repeat(100)}`), '');
    expect((await session.files.list('many')).entries.length).toBe(3000);
    const cut = await session.files.list('many', { limit: 1234 });
    expect([cut.entries.length, cut.truncated]).toEqual([1234, true]);
    expect((await session.files.list('many', { limit: 3000 })).truncated).toBe(false);
    await session.files.remove('many', { recursive: true });
    expect(existsSync(at('many'))).toBe(false);
  });

  it('single files with names that are not UTF-8 do not break a listing', async () => {
    execFileSync('sh', ['-c', `mkdir "${at('bytes')}" && touch "$(printf '${at('bytes')}/a\\377b')"`]);
    expect((await session.files.list('bytes')).entries.map(({ name }) => name)).toEqual(['a\uFFFDb']);
  });
});

describe('moving to another file system', () => {
  const elsewhere = existsSync('/dev/shm') ? '/dev/shm' : null;
  it.runIf(elsewhere !== null)(
    'a move to another file system copies, then removes the source: files, trees and links',
    async () => {
      const there = mkdtempSync(join(elsewhere ?? '', 'sandboxer-move-'));
      mkdirSync(at('moving/a/b'), { recursive: true });
      writeFileSync(at('moving/a/b/file'), randomBytes(100_000), { mode: 0o640 });
      symlinkSync('b/file', at('moving/a/link'));
      const before = readFileSync(at('moving/a/b/file'));
      await session.files.move('moving/a', join(there, 'made/a'), { overwrite: false });
      expect(existsSync(at('moving/a'))).toBe(false);
      expect(readFileSync(join(there, 'made/a/link')).equals(before)).toBe(true);
      expect(lstatSync(join(there, 'made/a/b/file')).mode & 0o777).toBe(0o640);
      writeFileSync(at('moving/x'), 'x');
      await expect(
        session.files.move('moving/x', join(there, 'made/a'), { overwrite: false }),
      ).rejects.toMatchObject(refused);
      await session.files.move('moving/x', join(there, 'y'), { overwrite: false });
      symlinkSync('nowhere', at('moving/dangling'));
      await session.files.move('moving/dangling', join(there, 'y'), { overwrite: true });
      expect(readlinkSync(join(there, 'y'))).toBe('nowhere');
      expect([readdirSync(at('moving')), readdirSync(there).sort()]).toEqual([[], ['made', 'y']]);
      rmSync(there, { recursive: true });
    },
  );
});

describe('removing a tree', () => {
  it('the removal of a tree does not follow links, and removes unreadable directories', async () => {
    const outside = mkdtempSync(join(tmpdir(), 'sandboxer-outside-'));
    writeFileSync(join(outside, 'kept'), '');
    mkdirSync(at('tree/a/b'), { recursive: true });
    symlinkSync(outside, at('tree/a/out'));
    writeFileSync(at('tree/a/b/file'), '');
    chmodSync(at('tree/a/b'), 0o500);
    await session.files.remove('tree', { recursive: true });
    expect(existsSync(at('tree'))).toBe(false);
    expect(existsSync(join(outside, 'kept'))).toBe(true);
    rmSync(outside, { recursive: true });
  });
});

describe('an archive', () => {
  const upload = (path: string, archive: Buffer, size = 1000) =>
    session.files.upload(path, bytesFrom(archive, size));

  it('an archive of GNU tar is unpacked, and GNU tar reads what is packed: long names, links, modes, sizes', async () => {
    const source = mkdtempSync(join(tmpdir(), 'sandboxer-source-'));
    const long = join('d'.repeat(120), 'e'.repeat(120));
    mkdirSync(join(source, long), { recursive: true });
    writeFileSync(join(source, long, 'f'.repeat(120)), 'deep');
    writeFileSync(join(source, 'big'), randomBytes(3_000_001));
    writeFileSync(join(source, 'run'), '#!/bin/sh\n', { mode: 0o755 });
    symlinkSync('x'.repeat(150), join(source, 'dangling'));
    symlinkSync('/etc/hostname', join(source, 'absolute'));
    execFileSync('ln', [join(source, 'big'), join(source, 'hard')]);
    mkdirSync(join(source, 'closed'));
    writeFileSync(join(source, 'closed', 'inner'), 'x');
    chmodSync(join(source, 'closed'), 0o555);
    for (const format of ['gnu', 'pax', 'ustar']) {
      const names = format === 'ustar' ? ['big', 'run', 'closed', 'hard', 'absolute'] : ['.'];
      const tar = execFileSync('tar', ['-C', source, `--format=${format}`, '-cf', '-', ...names], {
        maxBuffer: 1e8,
      });
      await upload(`up-${format}`, tar, 70_000);
      const down = mkdtempSync(join(tmpdir(), 'sandboxer-down-'));
      const packed = await bytesOf(await session.files.download(`up-${format}`));
      execFileSync('tar', ['-C', down, '-xpf', '-'], { input: packed });
      const only = format === 'ustar' ? ['--exclude=dangling', `--exclude=${'d'.repeat(120)}`] : [];
      execFileSync('diff', ['-r', '--no-dereference', ...only, source, down]);
      expect(lstatSync(join(down, 'run')).mode & 0o777).toBe(0o755);
      expect(lstatSync(join(down, 'closed')).mode & 0o777).toBe(0o555);
      rmSync(down, { recursive: true, force: true });
    }
    rmSync(source, { recursive: true, force: true });
  });

  it('an archive of a single file holds that file', async () => {
    writeFileSync(at('single'), 'content');
    const entries = entriesOf(await bytesOf(await session.files.download('single')));
    expect(entries.map(({ name, content }) => [name, content.toString()])).toEqual([['single', 'content']]);
  });

  it('an archive with anything but files, directories and links is refused', async () => {
    for (const flag of ['3', '4', '6', 'S', 'V', 'M', '9']) {
      const archive = archiveOf([{ name: 'thing', content: '' }]);
      archive[156] = flag.charCodeAt(0);
      archive.write('        ', 148);
      archive.write(
        `${archive
          .subarray(0, 512)
          .reduce((sum, byte) => sum + byte, 0)
          .toString(8)
          .padStart(6, '0')}\0 `,
        148,
      );
      await expect(upload('kinds', archive)).rejects.toMatchObject(refused);
    }
    expect((await session.files.list('kinds')).entries).toEqual([]);
  });

  it('an archive that is cut off or damaged anywhere is refused or taken, and never leads out', async () => {
    const archive = archiveOf([
      { name: 'a/b/file', content: randomBytes(2000) },
      { name: 'a/link', type: 'symlink', linkTarget: '../../../..' },
      { name: 'a/link/escaped', content: 'x' },
    ]);
    for (let n = 0; n < 300; n += 1) {
      const damaged = Buffer.from(archive.subarray(0, n % 3 === 0 ? n * 10 : archive.length));
      if (n % 3 !== 0)
        for (let k = 0; k < 4; k += 1) damaged[(n * 7919 + k * 1543) % damaged.length] = (n * 31 + k) & 0xff;
      await upload(`fuzz/base`, damaged, 777).catch((error) => expect(error.code).toMatch(/^SBX_PATH_/));
    }
    expect(readdirSync(at('fuzz'))).toEqual(['base']);
    expect(existsSync(join(agent.dir, 'escaped'))).toBe(false);
  });

  it('an archive is not unpacked through a link that was there before', async () => {
    mkdirSync(at('inside'));
    mkdirSync(at('outside'));
    symlinkSync('../outside', at('inside/door'));
    await expect(upload('inside', archiveOf([{ name: 'door/new', content: 'x' }]))).rejects.toMatchObject(
      refused,
    );
    await expect(
      upload('inside', archiveOf([{ name: 'door/sub/', type: 'directory' }])),
    ).rejects.toMatchObject(refused);
    expect(readdirSync(at('outside'))).toEqual([]);
    await upload('inside', archiveOf([{ name: 'door', content: 'now a file' }]));
    expect(readFileSync(at('inside/door'), 'utf8')).toBe('now a file');
  });

  it('an archive of an endless stream stops when it is aborted', async () => {
    const abort = new AbortController();
    const endless = (async function* () {
      const head = archiveOf([{ name: 'endless', content: '' }]).subarray(0, 512);
      yield head;
      for (;;) yield archiveOf([{ name: 'more', content: Buffer.alloc(50_000) }]).subarray(0, 512 + 50_176);
    })();
    setTimeout(() => abort.abort(new Error('enough')), 200);
    await expect(session.files.upload('endless', endless, { signal: abort.signal })).rejects.toThrow(
      'enough',
    );
    expect(await eventually(() => agent.descendants().length === 0)).toBe(true);
  });
});

describe('packing', () => {
  it('packing descends as far as names do', async () => {
    const top = 'deep';
    const levels = 'd/'.repeat(1500);
    mkdirSync(at(top));
    execFileSync('sh', ['-c', `mkdir -p "${levels}" && cd "${levels.slice(0, 2800)}" && echo end > file`], {
      cwd: at(top),
    });
    const entries = entriesOf(await bytesOf(await session.files.download(top)));
    expect(entries.at(-1)?.name.split('/').length).toBeGreaterThan(1400);
    expect(entries.some(({ name, content }) => name.endsWith('d/file') && String(content) === 'end\n')).toBe(
      true,
    );
    execFileSync('rm', ['-rf', at(top)]);
  });

  it.skipIf(!isRoot)(
    'packing refuses an unreadable file at once, or leaves it out with a message',
    async () => {
      const other = await agent.connect({ user: '65534' });
      mkdirSync(at('mixed/secret/inner'), { recursive: true });
      writeFileSync(at('mixed/open'), 'open');
      writeFileSync(at('mixed/closed'), 'closed', { mode: 0o600 });
      chmodSync(at('mixed/secret'), 0o700);
      await expect(other.files.download(at('mixed'))).rejects.toMatchObject({
        code: 'SBX_PATH_REFUSED',
        message: expect.stringMatching(/(closed|secret): Permission denied/),
      });
      let left: LeftOut | undefined;
      const onLeftOut = (told: LeftOut) => {
        left = told;
      };
      const entries = entriesOf(await bytesOf(await other.files.download(at('mixed'), { onLeftOut })));
      expect(entries.map(({ name }) => name).sort()).toEqual(['', 'open']);
      expect(left?.count).toBe(2);
      expect([...(left?.paths ?? [])].sort()).toEqual(['closed', 'secret']);
    },
  );
});

describe('watching', () => {
  async function watching(path: string, work: () => Promise<unknown>, done: (seen: FileChange[]) => boolean) {
    const stop = new AbortController();
    const seen: FileChange[] = [];
    const changes = await session.files.watch(path, { recursive: true, signal: stop.signal });
    const reading = (async () => {
      for await (const change of changes) seen.push(change);
    })();
    await work();
    const enough = await eventually(() => done(seen));
    stop.abort();
    await reading;
    return { seen, enough };
  }

  it('a watch reports entries made in a directory that is itself new, and moves', async () => {
    mkdirSync(at('watched'));
    const { seen, enough } = await watching(
      'watched',
      async () => {
        mkdirSync(at('watched/new/deep'), { recursive: true });
        writeFileSync(at('watched/new/deep/file'), 'x');
        await session.files.move('watched/new/deep/file', 'watched/moved', { overwrite: false });
        await session.files.write('watched/whole', bytesFrom('y'));
      },
      (all) => all.some(({ path }) => path === 'watched/whole'),
    );
    expect(enough).toBe(true);
    const told = (kind: string, path: string) =>
      seen.some((change) => change.kind === kind && change.path === path);
    expect(told('created', 'watched/new')).toBe(true);
    expect(told('renamed', 'watched/moved')).toBe(true);
    expect(told('modified', 'watched/whole')).toBe(true);
    expect(seen.some(({ path }) => path.includes('.sandboxer-'))).toBe(false);
  });

  it('a watch reports an overflow, and stays bounded', async () => {
    mkdirSync(at('flood'));
    const stop = new AbortController();
    const watched = await session.files.watch('flood', { recursive: true, signal: stop.signal });
    const changes = watched[Symbol.asyncIterator]();
    const first = changes.next();
    // Two files in turns: the kernel joins changes of one.
    const files = ['a', 'b'].map((letter) => openSync(at(`flood/${letter.repeat(200)}`), 'w'));
    for (let n = 0; n < 60_000; n += 1) writeSync(files[n % 2] ?? 0, 'x');
    for (const file of files) closeSync(file);
    const before = agent.residentKb;
    await first;
    let overflow = false;
    for (let n = 0; n < 200_000 && !overflow; n += 1)
      overflow = (await changes.next()).value?.kind === 'overflow';
    expect(overflow).toBe(true);
    expect(agent.residentKb - before).toBeLessThan(4096);
    stop.abort();
  });

  it('a watch of a missing path is refused, and a watch ends when its directory goes', async () => {
    await expect(session.files.watch('nothing-here', { recursive: false })).rejects.toMatchObject({
      code: 'SBX_PATH_NOT_FOUND',
    });
    mkdirSync(at('going'));
    const all: string[] = [];
    const changes = await session.files.watch('going', { recursive: true });
    await session.files.remove('going', { recursive: false });
    for await (const { kind } of changes) all.push(kind);
    expect(all).toEqual(['removed']);
  });
});

describe.runIf(isRoot)('the default user', () => {
  it('the default user owns its files and is refused those of others, while root files are root’s', async () => {
    const other = await agent.connect({ user: 'daemon' });
    const owner = (path: string) => lstatSync(at(path)).uid;
    await other.files.write('by-daemon/file', bytesFrom('x'));
    await other.files.upload('by-daemon/tree', bytesFrom(archiveOf([{ name: 'a/b', content: 'x' }])));
    expect([owner('by-daemon'), owner('by-daemon/file'), owner('by-daemon/tree/a/b')]).toEqual([1, 1, 1]);
    for (const work of [
      () => other.files.read('/etc/shadow'),
      () => other.files.write('/etc/sandboxer-test', bytesFrom('x')),
      () => other.files.list('/root/.ssh'),
      () => other.files.mkdir('/sandboxer-test', { parents: true, mode: 0o755 }),
      () => other.files.upload('/etc/sandboxer-test', bytesFrom(archiveOf([{ name: 'a', content: 'x' }]))),
    ]) {
      await expect(work()).rejects.toMatchObject({ code: expect.stringMatching(/^SBX_PATH_/) });
    }
    await other.rootFiles.write('by-root', bytesFrom('x'));
    expect(owner('by-root')).toBe(0);
    // And it is itself again afterwards.
    await session.files.write('by-default', bytesFrom('x'));
    expect(owner('by-default')).toBe(0);
  });
});
