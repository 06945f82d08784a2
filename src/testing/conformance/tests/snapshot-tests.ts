import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import type { SandboxFiles } from '../../../core/ports/session.ts';
import { bytesFrom, bytesOf } from '../bytes.ts';
import { claimTests } from '../conformance-test.ts';
import { expectError } from '../expect-error.ts';
import type { Subject } from '../subject.ts';

const keeps = (kind: string) => kind === 'filesystem' || kind === 'memory';
const test = claimTests('snapshot', ({ snapshot, files }) => keeps(snapshot) && files);
const forkTest = claimTests('fork', ({ fork, files }) => fork && files);

async function put(files: SandboxFiles, path: string, content: string): Promise<void> {
  await files.write(path, bytesFrom(content));
}

async function text(files: SandboxFiles, path: string): Promise<string> {
  return (await bytesOf((await files.read(path)).body)).toString();
}

function snapshotSpec(subject: Subject) {
  return { snapshotId: `snap_${randomBytes(10).toString('hex')}`, name: 'conformance', owner: subject.owner };
}

export const snapshotTests = [
  test('a snapshot is what was there, and shares nothing afterwards', async (subject) => {
    const { extension, capabilities } = subject;
    const source = await subject.establish();
    await put(source.files, 'dir/a', 'one');
    const spec = snapshotSpec(subject);
    const taken = await extension.snapshot?.(source.handle, spec, subject.context());
    assert.ok(taken !== undefined);
    assert.deepEqual((await extension.snapshot?.(source.handle, spec, subject.context()))?.ref, taken.ref);
    if (!capabilities.snapshot_destructive) {
      await put(source.files, 'dir/a', 'two');
      await put(source.files, 'dir/later', 'later');
    }
    const ref = JSON.parse(JSON.stringify(taken.ref));
    const restoredSpec = subject.spec();
    const handle = await extension.restore?.(restoredSpec, ref, subject.context());
    assert.ok(handle !== undefined);
    assert.deepEqual(
      await extension.restore?.(restoredSpec, ref, subject.context()),
      handle,
      'Restored twice.',
    );
    const restored = await subject.open(restoredSpec, handle);
    assert.equal(await text(restored.files, 'dir/a'), 'one');
    await expectError(restored.files.stat('dir/later'), ['SBX_PATH_NOT_FOUND']);
    await put(restored.files, 'dir/a', 'three');
    if (!capabilities.snapshot_destructive) assert.equal(await text(source.files, 'dir/a'), 'two');
    const secondSpec = subject.spec();
    const secondHandle = await extension.restore?.(secondSpec, ref, subject.context());
    assert.ok(secondHandle !== undefined);
    const second = await subject.open(secondSpec, secondHandle);
    assert.equal(
      await text(second.files, 'dir/a'),
      'one',
      'The snapshot was changed by a sandbox made from it.',
    );
    for (const one of [source.spec, restoredSpec, secondSpec])
      assert.equal((await subject.teardown(one)).gone, true);
    await extension.deleteSnapshot?.(ref, spec, subject.context());
    await extension.deleteSnapshot?.(ref, spec, subject.context());
  }),

  test('a snapshot outlives its source, and is gone when it is deleted', async (subject) => {
    const { extension } = subject;
    const source = await subject.establish();
    await put(source.files, 'kept', 'kept');
    const spec = snapshotSpec(subject);
    const taken = await extension.snapshot?.(source.handle, spec, subject.context());
    assert.ok(taken !== undefined);
    await subject.teardown(source.spec, source.handle);
    const restoredSpec = subject.spec();
    const handle = await extension.restore?.(restoredSpec, taken.ref, subject.context());
    assert.ok(handle !== undefined);
    const restored = await subject.open(restoredSpec, handle);
    assert.equal(await text(restored.files, 'kept'), 'kept');
    await extension.deleteSnapshot?.(taken.ref, spec, subject.context());
    assert.equal(await text(restored.files, 'kept'), 'kept', 'What was made from it needs it still.');
    const late = subject.spec();
    const work = extension.restore?.(late, taken.ref, subject.context());
    assert.ok(work !== undefined);
    await expectError(work, [], 'not_created');
    await subject.teardown(restoredSpec, handle);
  }),

  forkTest('a fork has what its source had, and shares nothing afterwards', async (subject) => {
    const { extension } = subject;
    const source = await subject.establish();
    await put(source.files, 'a', 'one');
    const forkSpec = subject.spec();
    const handle = await extension.fork?.(source.handle, forkSpec, subject.context());
    assert.ok(handle !== undefined);
    assert.deepEqual(
      await extension.fork?.(source.handle, forkSpec, subject.context()),
      handle,
      'Forked twice.',
    );
    const forked = await subject.open(forkSpec, handle);
    assert.equal(await text(forked.files, 'a'), 'one');
    await put(source.files, 'a', 'two');
    await put(forked.files, 'b', 'three');
    assert.equal(await text(forked.files, 'a'), 'one');
    await expectError(source.files.stat('b'), ['SBX_PATH_NOT_FOUND']);
    await subject.teardown(source.spec, source.handle);
    assert.equal(await text(forked.files, 'b'), 'three', 'It did not outlive its source.');
    await subject.teardown(forkSpec, handle);
  }),
];
