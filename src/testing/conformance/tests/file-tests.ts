import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import type { SandboxFiles } from '../../../core/ports/session.ts';
import { bytesFrom, bytesOf } from '../bytes.ts';
import { claimTests } from '../conformance-test.ts';
import { expectError } from '../expect-error.ts';
import { runShell } from '../run-program.ts';
import { archiveOf, entriesOf } from '../tar-archive.ts';

const test = claimTests('files', ({ files }) => files);
const PARENTS = { parents: true, mode: 0o755 };

async function put(files: SandboxFiles, path: string, content: Uint8Array | string) {
  return await files.write(path, bytesFrom(content));
}

async function text(files: SandboxFiles, path: string): Promise<string> {
  return (await bytesOf((await files.read(path)).body)).toString();
}

async function names(files: SandboxFiles, path: string): Promise<string[]> {
  return (await files.list(path)).entries.map(({ name }) => name).sort();
}

export const fileTests = [
  test('bytes come back as they were written', async (subject) => {
    const { files } = await subject.shared();
    for (const [name, size] of [
      ['empty', 0],
      ['small', 10],
      ['large', 5 * 1_048_576],
    ] as const) {
      const content = randomBytes(size);
      const entry = await put(files, `bytes/${name}`, content);
      assert.deepEqual(
        { kind: entry.kind, size: entry.size, name: entry.name },
        { kind: 'file', size, name },
      );
      const { size: told, body } = await files.read(`bytes/${name}`);
      assert.equal(told, size);
      assert.ok((await bytesOf(body)).equals(content), `${name} differs.`);
    }
  }),

  test('a range is what was asked for', async (subject) => {
    const { files } = await subject.shared();
    await put(files, 'ranges', '0123456789');
    const range = async (offset: number, length?: number) => {
      const { size, body } = await files.read('ranges', {
        offset,
        ...(length === undefined ? {} : { length }),
      });
      assert.equal(size, 10, 'The size is that of the whole file.');
      return (await bytesOf(body)).toString();
    };
    assert.equal(await range(3), '3456789');
    assert.equal(await range(2, 4), '2345');
    assert.equal(await range(8, 100), '89');
    assert.equal(await range(10, 5), '');
  }),

  test('names are taken as they are', async (subject) => {
    const { files } = await subject.shared();
    const odd = ['with space', 'zażółć-😀', 'quote\'"', '$HOME', '-rf', '*', 'back\\slash', '...'];
    for (const name of odd) await put(files, `odd/${name}`, name);
    assert.deepEqual(await names(files, 'odd'), [...odd].sort());
    for (const name of odd) assert.equal(await text(files, `odd/${name}`), name);
  }),

  test('a write replaces the file as a whole', async (subject) => {
    const { files } = await subject.shared();
    const [old, fresh] = ['a'.repeat(1_000_000), 'b'.repeat(1_000_000)];
    await put(files, 'atomic', old);
    let writing = true;
    const half = Promise.withResolvers<void>();
    const slowly = (async function* () {
      yield Buffer.from(fresh.slice(0, 500_000));
      await half.promise;
      yield Buffer.from(fresh.slice(500_000));
    })();
    const written = files.write('atomic', slowly).finally(() => {
      writing = false;
    });
    for (let n = 0; n < 5; n += 1) assert.equal(await text(files, 'atomic'), old, 'Half of it was seen.');
    half.resolve();
    while (writing) assert.ok([old, fresh].includes(await text(files, 'atomic')), 'Half of it was seen.');
    await written;
    assert.equal(await text(files, 'atomic'), fresh);
    assert.deepEqual(
      (await names(files, '.')).filter((name) => name.startsWith('.sandboxer')),
      [],
    );
  }),

  test('a write that breaks off leaves the old file', async (subject) => {
    const { files } = await subject.shared();
    await put(files, 'broken/file', 'old');
    const breaking = (async function* () {
      yield Buffer.from('new');
      throw new Error('The source broke off.');
    })();
    await assert.rejects(files.write('broken/file', breaking));
    assert.equal(await text(files, 'broken/file'), 'old');
  }),

  test('exclusive refuses what exists, and mode is kept', async (subject) => {
    const { files } = await subject.shared();
    const entry = await files.write('exclusive', bytesFrom('one'), { exclusive: true, mode: 0o640 });
    assert.equal(entry.mode & 0o777, 0o640);
    await expectError(files.write('exclusive', bytesFrom('two'), { exclusive: true }), ['SBX_PATH_REFUSED']);
    assert.equal(await text(files, 'exclusive'), 'one');
  }),

  test('list and stat agree', async (subject) => {
    const { files } = await subject.shared();
    await put(files, 'listed/file', 'abc');
    await files.mkdir('listed/directory', PARENTS);
    const { entries, truncated } = await files.list('listed');
    assert.equal(truncated, false);
    assert.deepEqual(entries.map(({ name, kind }) => [name, kind]).sort(), [
      ['directory', 'directory'],
      ['file', 'file'],
    ]);
    for (const entry of entries) assert.deepEqual(await files.stat(entry.path), entry);
    const cut = await files.list('listed', { limit: 1 });
    assert.deepEqual([cut.entries.length, cut.truncated], [1, true]);
  }),

  test('what is not there is SBX_PATH_NOT_FOUND', async (subject) => {
    const { files } = await subject.shared();
    await expectError(files.stat('missing'), ['SBX_PATH_NOT_FOUND']);
    await expectError(files.read('missing/file'), ['SBX_PATH_NOT_FOUND']);
    await expectError(files.list('missing'), ['SBX_PATH_NOT_FOUND']);
    await expectError(files.move('missing', 'elsewhere', { overwrite: true }), ['SBX_PATH_NOT_FOUND']);
    await expectError(files.mkdir('missing/inner', { parents: false, mode: 0o755 }), ['SBX_PATH_NOT_FOUND']);
    await expectError(files.download('missing').then(bytesOf), ['SBX_PATH_NOT_FOUND']);
  }),

  test('the wrong kind is SBX_PATH_REFUSED', async (subject) => {
    const { files } = await subject.shared();
    await put(files, 'kind/file', 'x');
    await expectError(
      files.read('kind').then(({ body }) => bytesOf(body)),
      ['SBX_PATH_REFUSED'],
    );
    await expectError(put(files, 'kind', 'x'), ['SBX_PATH_REFUSED']);
    await expectError(files.list('kind/file'), ['SBX_PATH_REFUSED']);
    await expectError(files.mkdir('kind/file', { parents: false, mode: 0o755 }), ['SBX_PATH_REFUSED']);
  }),

  test('move renames, and replaces only when told to', async (subject) => {
    const { files } = await subject.shared();
    await put(files, 'move/a', 'a');
    await put(files, 'move/b', 'b');
    await expectError(files.move('move/a', 'move/b', { overwrite: false }), ['SBX_PATH_REFUSED']);
    assert.deepEqual([await text(files, 'move/a'), await text(files, 'move/b')], ['a', 'b']);
    await files.move('move/a', 'move/b', { overwrite: true });
    assert.deepEqual([await names(files, 'move'), await text(files, 'move/b')], [['b'], 'a']);
    await put(files, 'move/dir/inner/file', 'deep');
    await files.move('move/dir', 'move/renamed', { overwrite: false });
    assert.equal(await text(files, 'move/renamed/inner/file'), 'deep');
  }),

  test('remove takes what it is told to, and what is not there is success', async (subject) => {
    const { files } = await subject.shared();
    await put(files, 'remove/dir/file', 'x');
    await put(files, 'remove/file', 'x');
    await files.remove('remove/none', { recursive: false });
    await files.remove('remove/none/deeper', { recursive: true });
    await files.remove('remove/file', { recursive: false });
    await expectError(files.remove('remove/dir', { recursive: false }), ['SBX_PATH_REFUSED']);
    await files.remove('remove/dir', { recursive: true });
    assert.deepEqual(await names(files, 'remove'), []);
  }),

  test('a tree goes up and comes down', async (subject) => {
    const { files } = await subject.shared();
    const binary = randomBytes(100_000);
    const archive = archiveOf([
      { name: './', type: 'directory', mode: 0o755 },
      { name: './src/', type: 'directory', mode: 0o755 },
      { name: './src/main.txt', content: 'hello', mode: 0o600 },
      { name: 'implicit/parent/data', content: binary },
      { name: 'empty', content: '' },
    ]);
    assert.deepEqual(await files.upload('tree', bytesFrom(archive, 1000)), { files: 3 });
    assert.equal(await text(files, 'tree/src/main.txt'), 'hello');
    assert.equal((await files.stat('tree/src/main.txt')).mode & 0o777, 0o600);
    const down = entriesOf(await bytesOf(await files.download('tree')));
    const content = (name: string) => down.find((entry) => entry.name === name)?.content;
    assert.ok(content('implicit/parent/data')?.equals(binary));
    assert.deepEqual(
      down
        .filter(({ type }) => type === 'file')
        .map(({ name }) => name)
        .sort(),
      ['empty', 'implicit/parent/data', 'src/main.txt'],
    );
  }),

  test(
    'files and programs see the same',
    async (subject) => {
      const { files, session } = await subject.shared();
      await put(files, 'seen/from-files', 'written by files');
      const { stdout } = await runShell(
        session,
        'cat seen/from-files; printf "written by program" > seen/from-program; chmod 600 seen/from-program; ln -s from-files seen/link',
      );
      assert.equal(stdout.toString(), 'written by files');
      assert.equal(await text(files, 'seen/from-program'), 'written by program');
      assert.equal((await files.stat('seen/from-program')).mode & 0o777, 0o600);
      const link = await files.stat('seen/link');
      assert.deepEqual([link.kind, link.link_target], ['symlink', 'from-files']);
      assert.equal(await text(files, 'seen/link'), 'written by files');
      const down = entriesOf(await bytesOf(await files.download('seen')));
      assert.equal(down.find(({ name }) => name === 'link')?.linkTarget, 'from-files');
      const pwd = (await runShell(session, 'pwd')).stdout.toString().trim();
      assert.equal(await text(files, `${pwd}/seen/from-files`), 'written by files');
    },
    { shell: true, applies: ({ exec }) => exec },
  ),
];
