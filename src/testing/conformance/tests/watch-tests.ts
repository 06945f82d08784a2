import assert from 'node:assert/strict';
import type { FileChange } from '../../../contract/sandboxes/files.ts';
import { bytesFrom } from '../bytes.ts';
import { claimTests } from '../conformance-test.ts';
import { expectError } from '../expect-error.ts';

const ROUNDS = 5;
const TOLD_MS = 20_000;

const test = claimTests('watch', ({ watch, files }) => watch && files);

export const watchTests = [
  test('changes are told, also deep below', async (subject) => {
    const { files } = await subject.shared();
    assert.ok(files.watch !== undefined);
    await files.mkdir('watched/deep', { parents: true, mode: 0o755 });
    const stop = new AbortController();
    const seen: FileChange[] = [];
    const changes = await files.watch('watched', { recursive: true, signal: stop.signal });
    const watching = (async () => {
      for await (const change of changes) seen.push(change);
    })();
    await files.write('watched/new', bytesFrom('1'));
    await files.write('watched/deep/inner', bytesFrom('2'));
    const told = (name: string, kinds: string[]) =>
      seen.some(({ path, kind }) => path.endsWith(name) && kinds.includes(kind));
    const made = ['created', 'modified', 'renamed'];
    assert.ok(await subject.eventually(async () => told('watched/new', made)), 'A new file was not told.');
    assert.ok(
      await subject.eventually(async () => told('deep/inner', made)),
      'A new file below was not told.',
    );
    await files.remove('watched/new', { recursive: false });
    assert.ok(
      await subject.eventually(async () => told('watched/new', ['removed', 'renamed'])),
      'A removed file was not told.',
    );
    stop.abort();
    await watching;
  }),

  test('no change is missed once it is said to be watched', async (subject) => {
    const { files } = await subject.shared();
    assert.ok(files.watch !== undefined);
    for (let round = 0; round < ROUNDS; round += 1) {
      const directory = `watched-at-once/${round}`;
      await files.mkdir(`${directory}/deep`, { parents: true, mode: 0o755 });
      const stop = new AbortController();
      const changes = await files.watch(directory, { recursive: true, signal: stop.signal });
      // Changes before the first read must wait for it.
      await files.write(`${directory}/deep/at-once`, bytesFrom('1'));
      const timer = setTimeout(() => stop.abort(), TOLD_MS);
      let told = false;
      for await (const { path } of changes) {
        told = path.endsWith('deep/at-once');
        if (told) break;
      }
      clearTimeout(timer);
      stop.abort();
      assert.ok(told, `Round ${round}: a change right after the answer was not told.`);
    }
  }),

  test('a path that is not there is refused before anything is watched', async (subject) => {
    const { files } = await subject.shared();
    assert.ok(files.watch !== undefined);
    await expectError(files.watch('not-there', { recursive: true }), ['SBX_PATH_NOT_FOUND']);
  }),
];
