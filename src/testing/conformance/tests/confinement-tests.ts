import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SandboxerError } from '../../../contract/errors/errors.ts';
import type { SandboxFiles } from '../../../core/ports/session.ts';
import { bytesFrom, bytesOf } from '../bytes.ts';
import { claimTests } from '../conformance-test.ts';
import { runShell } from '../run-program.ts';
import type { Subject } from '../subject.ts';
import type { ArchiveEntry } from '../tar-archive.ts';
import { archiveOf, entriesOf } from '../tar-archive.ts';

const test = claimTests('files', ({ files }) => files);

/** A file of the machine that runs the suite: no operation on a sandbox may read or change it. */
class Outside {
  readonly directory: string;
  readonly secret = `outside-${randomBytes(12).toString('hex')}`;
  /** A name that only a read of the directory reveals. */
  readonly mark = `mark-${randomBytes(6).toString('hex')}`;

  constructor(directory: string) {
    this.directory = directory;
  }

  get file(): string {
    return join(this.directory, 'precious');
  }

  async put(): Promise<void> {
    await writeFile(this.file, this.secret);
    await writeFile(join(this.directory, this.mark), '');
    await mkdir(join(this.directory, 'kept'));
    await writeFile(join(this.directory, 'kept', 'inner'), this.secret);
  }

  async check(): Promise<void> {
    const where = 'The machine outside was changed.';
    assert.equal(await readFile(this.file, 'utf8'), this.secret, where);
    assert.equal(await readFile(join(this.directory, 'kept', 'inner'), 'utf8'), this.secret, where);
    assert.deepEqual((await readdir(this.directory)).sort(), ['kept', this.mark, 'precious'], where);
    assert.deepEqual(await readdir(join(this.directory, 'kept')), ['inner'], where);
  }
}

async function withOutside(work: (outside: Outside) => Promise<void>): Promise<void> {
  const outside = new Outside(await mkdtemp(join(tmpdir(), 'conformance-outside-')));
  try {
    await outside.put();
    await work(outside);
    await outside.check();
  } finally {
    await rm(outside.directory, { recursive: true });
  }
}

/** Requires an operation to reveal nothing of the outside: it may fail with a typed error, or do something inside. */
async function givesNothingAway(outside: Outside, work: () => Promise<unknown>): Promise<void> {
  try {
    const answer = JSON.stringify((await work()) ?? null);
    assert.ok(!answer.includes(outside.secret), 'It read the machine outside.');
    assert.ok(!answer.includes(outside.mark), 'It listed the machine outside.');
  } catch (error) {
    if (error instanceof assert.AssertionError) throw error;
    assert.ok(
      error instanceof SandboxerError,
      `It failed with something else than a SandboxerError: ${error}`,
    );
  }
  await outside.check();
}

/** Runs every operation that could follow a path out of the sandbox. */
async function tryEverything(files: SandboxFiles, outside: Outside, toFile: string, toDirectory: string) {
  const looking: (() => Promise<unknown>)[] = [
    async () => (await bytesOf((await files.read(toFile)).body)).toString(),
    async () => (await bytesOf((await files.read(`${toDirectory}/precious`)).body)).toString(),
    async () => (await files.list(toDirectory)).entries.map(({ name }) => name),
    async () =>
      (await files.stat(`${toDirectory}/precious`)).size === outside.secret.length && outside.secret,
    async () => (await bytesOf(await files.download(toFile))).toString('latin1'),
    async () =>
      entriesOf(await bytesOf(await files.download(`${toDirectory}/kept`))).map(({ content }) =>
        content.toString(),
      ),
  ];
  const changing: (() => Promise<unknown>)[] = [
    () => files.write(toFile, bytesFrom('overwritten')),
    () => files.write(`${toDirectory}/new`, bytesFrom('made outside')),
    () => files.mkdir(`${toDirectory}/made`, { parents: true, mode: 0o755 }),
    () => files.move(`${toDirectory}/precious`, 'stolen', { overwrite: true }),
    () =>
      files
        .write('loot', bytesFrom('x'))
        .then(() => files.move('loot', `${toDirectory}/planted`, { overwrite: true })),
    () => files.remove(`${toDirectory}/precious`, { recursive: false }),
    () => files.remove(`${toDirectory}/kept`, { recursive: true }),
    () => files.upload(toDirectory, bytesFrom(archiveOf([{ name: 'uploaded', content: 'x' }]))),
  ];
  for (const attempts of [looking, changing])
    await Promise.all(attempts.map((attempt) => givesNothingAway(outside, attempt)));
}

async function refusesArchive(subject: Subject, name: string, entries: (outside: Outside) => ArchiveEntry[]) {
  await withOutside(async (outside) => {
    const { files } = await subject.shared();
    const base = `slip-${name}/base`;
    const work = files.upload(base, bytesFrom(archiveOf(entries(outside))));
    const outcome = await work.then(
      () => null,
      (error: unknown) => error,
    );
    assert.ok(
      outcome instanceof SandboxerError,
      `The archive was accepted, or failed oddly: ${String(outcome)}`,
    );
    assert.equal(outcome.code, 'SBX_PATH_REFUSED');
    const beside = (await files.list(`slip-${name}`).catch(() => ({ entries: [] }))).entries;
    assert.deepEqual(
      beside.filter(({ name: entry }) => entry !== 'base'),
      [],
      'It wrote beside its place.',
    );
  });
}

export const confinementTests = [
  test('no .. leads out', async (subject) => {
    await withOutside(async (outside) => {
      const { files } = await subject.shared();
      const up = '../'.repeat(40);
      await tryEverything(
        files,
        outside,
        `${up}${outside.file.slice(1)}`,
        `${up}${outside.directory.slice(1)}`,
      );
      await files.mkdir('dots/inner', { parents: true, mode: 0o755 });
      const deep = `dots/inner/${up}`;
      await tryEverything(
        files,
        outside,
        `${deep}${outside.file.slice(1)}`,
        `${deep}${outside.directory.slice(1)}`,
      );
    });
  }),

  test('no absolute path leads out', async (subject) => {
    await withOutside(async (outside) => {
      const { files } = await subject.shared();
      await tryEverything(files, outside, outside.file, outside.directory);
    });
  }),

  test(
    'no link leads out',
    async (subject) => {
      await withOutside(async (outside) => {
        const { files, session } = await subject.shared();
        const up = '../'.repeat(40);
        const script = [
          'rm -rf links; mkdir -p links; cd links',
          `ln -s "${outside.file}" file; ln -s "${outside.directory}" dir; ln -s dir again`,
          `ln -s "${up}${outside.file.slice(1)}" up-file; ln -s "${up}${outside.directory.slice(1)}" up-dir`,
          'ln -s loop loop',
        ].join('; ');
        assert.equal((await runShell(session, script)).code, 0);
        await tryEverything(files, outside, 'links/file', 'links/dir');
        await tryEverything(files, outside, 'links/file', 'links/again');
        await runShell(session, script);
        await tryEverything(files, outside, 'links/up-file', 'links/up-dir');
        await givesNothingAway(outside, () => files.read('links/loop'));
        await files.remove('links', { recursive: true });
      });
    },
    { shell: true, applies: ({ exec }) => exec },
  ),

  test(
    'removing and moving a link takes the link',
    async (subject) => {
      await withOutside(async (outside) => {
        const { files, session } = await subject.shared();
        await runShell(
          session,
          `mkdir -p unlink; ln -s "${outside.directory}" unlink/a; ln -s "${outside.file}" unlink/b`,
        );
        await files.move('unlink/b', 'unlink/c', { overwrite: false });
        await files.remove('unlink/a', { recursive: true });
        await files.remove('unlink/c', { recursive: false });
        assert.deepEqual((await files.list('unlink')).entries, []);
      });
    },
    { shell: true, applies: ({ exec }) => exec },
  ),

  test('an archive with .. is refused', (subject) =>
    refusesArchive(subject, 'dots', () => [
      { name: 'fine', content: 'x' },
      { name: '../slipped', content: 'x' },
    ])),

  test('an archive with an absolute name is refused', (subject) =>
    refusesArchive(subject, 'absolute', (outside) => [
      { name: join(outside.directory, 'new'), content: 'x' },
    ])),

  test('an archive that goes through a link of its own is refused', (subject) =>
    refusesArchive(subject, 'link', (outside) => [
      { name: 'door', type: 'symlink', linkTarget: outside.directory },
      { name: 'door/new', content: 'x' },
    ])),

  test('an archive with a hard link outside is refused', (subject) =>
    refusesArchive(subject, 'hardlink', (outside) => [
      { name: 'hard', type: 'hardlink', linkTarget: outside.file },
      { name: 'hard', content: 'overwritten' },
    ])),

  test('a damaged archive is refused', async (subject) => {
    const { files } = await subject.shared();
    const damaged = Buffer.alloc(2048, 0x41);
    const work = files.upload('damaged', bytesFrom(damaged));
    await assert.rejects(work, (error) => error instanceof SandboxerError);
  }),
];
