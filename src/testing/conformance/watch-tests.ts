import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import type { FileChange } from '../../contract/files.ts';
import { bytesFrom } from './bytes.ts';
import { claimTests } from './conformance-test.ts';

const test = claimTests('watch', ({ watch, files }) => watch && files);

export const watchTests = [
  test('changes are told, also deep below', async (subject) => {
    const { files } = await subject.shared();
    assert.ok(files.watch !== undefined);
    await files.mkdir('watched/deep', { parents: true, mode: 0o755 });
    const stop = new AbortController();
    const seen: FileChange[] = [];
    const watching = (async () => {
      for await (const change of files.watch?.('watched', { recursive: true, signal: stop.signal }) ?? []) {
        seen.push(change);
      }
    })();
    await sleep(500);
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
];
