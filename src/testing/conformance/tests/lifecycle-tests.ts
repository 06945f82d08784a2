import assert from 'node:assert/strict';
import type { Handle } from '../../../core/ports/extension.ts';
import { claimTests } from '../conformance-test.ts';
import { runProgram, runShell } from '../run-program.ts';

const test = claimTests('lifecycle');

export const lifecycleTests = [
  test('provision twice is one resource and one handle', async (subject) => {
    const { extension } = subject;
    const spec = subject.spec({ owner: `${subject.owner}-twice` });
    const first = await extension.provision(spec, subject.context());
    const second = await extension.provision(spec, subject.context());
    assert.deepEqual(second, first, 'The handles differ.');
    assert.deepEqual(await subject.ownedAttempts(spec.stamp.owner), [spec.stamp.attemptId]);
  }),

  test('provision at the same time is one resource and one handle', async (subject) => {
    const { extension } = subject;
    const spec = subject.spec({ owner: `${subject.owner}-same-time` });
    const handles = await Promise.all([1, 2, 3].map(() => extension.provision(spec, subject.context())));
    assert.deepEqual(handles[1], handles[0], 'The handles differ.');
    assert.deepEqual(handles[2], handles[0], 'The handles differ.');
    assert.deepEqual(await subject.ownedAttempts(spec.stamp.owner), [spec.stamp.attemptId]);
  }),

  test(
    'ready means that a command runs',
    async (subject) => {
      const { session } = await subject.establish();
      const { code } = await runProgram(session, ['/bin/true']);
      assert.equal(code, 0);
    },
    { applies: ({ exec }) => exec },
  ),

  test('a handle survives being written down', async (subject) => {
    const { handle, spec } = await subject.establish();
    const stored = JSON.parse(JSON.stringify(handle));
    assert.deepEqual(stored, handle, 'It changes in JSON.');
    assert.equal(handle.version, subject.extension.header.handleVersion);
    const again = await subject.extension.connect(stored, subject.context());
    await again.close();
    assert.equal((await subject.teardown(spec, stored)).gone, true);
  }),

  test('teardown removes it, and again is success', async (subject) => {
    const { spec, handle } = await subject.establish({ owner: `${subject.owner}-twice-down` });
    const first = await subject.teardown(spec, handle);
    assert.equal(first.gone, true, JSON.stringify(first.remaining));
    assert.deepEqual(first.remaining, []);
    assert.deepEqual(await subject.ownedAttempts(spec.stamp.owner), [], 'It is still listed.');
    assert.equal((await subject.teardown(spec, handle)).gone, true);
    await assert.rejects(async () => {
      const session = await subject.extension.connect(handle, subject.context());
      await runProgram(session, ['/bin/true']);
    }, 'It can still be used.');
  }),

  test('teardown works by the stamp alone', async (subject) => {
    const { spec } = await subject.establish({ owner: `${subject.owner}-stamp` });
    assert.equal((await subject.teardown(spec, null)).gone, true);
    assert.deepEqual(await subject.ownedAttempts(spec.stamp.owner), []);
  }),

  test('teardown right after provision leaves nothing', async (subject) => {
    const spec = subject.spec({ owner: `${subject.owner}-at-once` });
    await subject.extension.provision(spec, subject.context());
    assert.equal((await subject.teardown(spec)).gone, true);
    assert.deepEqual(await subject.ownedAttempts(spec.stamp.owner), []);
  }),

  test('teardown of what never was is success', async (subject) => {
    const report = await subject.teardown(subject.spec());
    assert.deepEqual({ gone: report.gone, remaining: report.remaining }, { gone: true, remaining: [] });
  }),

  test('teardown does not touch another owner’s', async (subject) => {
    const { spec, handle } = await subject.establish({ owner: `${subject.owner}-mine` });
    const stamp = { ...spec.stamp, owner: `${subject.owner}-other` };
    await subject.extension.teardown({ stamp, handle: null }, subject.context()).catch(() => {});
    assert.deepEqual(await subject.ownedAttempts(spec.stamp.owner), [spec.stamp.attemptId]);
    await subject.teardown(spec, handle);
  }),

  test('listOwned shows exactly what is ours', async (subject) => {
    const [ours, others] = [`${subject.owner}-ours`, `${subject.owner}-others`];
    const mine = [1, 2, 3].map(() => subject.spec({ owner: ours }));
    const foreign = subject.spec({ owner: others });
    await Promise.all([...mine, foreign].map((spec) => subject.extension.provision(spec, subject.context())));
    const found = await subject.owned(ours);
    const wanted = mine.map(({ stamp }) => stamp).sort((a, b) => (a.attemptId < b.attemptId ? -1 : 1));
    const seen = found.map(({ stamp }) => stamp).sort((a, b) => (a.attemptId < b.attemptId ? -1 : 1));
    assert.deepEqual(seen, wanted);
    assert.deepEqual(await subject.ownedAttempts(others), [foreign.stamp.attemptId]);
    for (const spec of [...mine, foreign]) assert.equal((await subject.teardown(spec)).gone, true);
    assert.deepEqual(await subject.owned(ours), []);
  }),

  test('listUnowned shows what carries another owner’s mark, and never ours', async (subject) => {
    if (subject.extension.listUnowned === undefined) return;
    const [ours, others] = [`${subject.owner}-looking`, `${subject.owner}-elsewhere`];
    const specs = [subject.spec({ owner: ours }), subject.spec({ owner: others })] as const;
    await Promise.all(specs.map((spec) => subject.extension.provision(spec, subject.context())));
    const seen = new Map<string, string | null>();
    for await (const one of subject.extension.listUnowned(ours, subject.context()))
      seen.set(one.what, one.owner);
    const [mine, foreign] = specs.map(({ stamp }) => stamp.attemptId) as [string, string];
    assert.equal(seen.get(foreign), others);
    assert.equal(seen.has(mine), false);
    for (const spec of specs) assert.equal((await subject.teardown(spec)).gone, true);
  }),

  test('what its programs take grows with work, is told at the end, and begins anew for the next', async (subject) => {
    const { measure } = subject.extension;
    if (measure === undefined) return;
    const cpuOf = async (handle: Handle) =>
      (await subject.extension.measure?.(handle, subject.context()))?.cpuMs ?? Number.NaN;
    const { spec, handle, session } = await subject.establish();
    const idle = await cpuOf(handle);
    if (Number.isNaN(idle)) return;
    await runShell(session, 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done');
    const busy = await cpuOf(handle);
    assert.ok(busy > idle, 'work is not counted');
    const { used } = await subject.teardown(spec);
    assert.ok((used?.cpuMs ?? 0) >= busy, 'the end tells less than there was before');
    assert.ok((await cpuOf((await subject.establish()).handle)) < busy, 'it counts what another one took');
  }),

  test('usage grows and is finite', async (subject) => {
    const { usage } = subject.extension;
    if (usage === undefined) return;
    const { handle } = await subject.shared();
    const first = await subject.extension.usage?.(handle, subject.context());
    await subject.clock.sleep(50);
    const second = await subject.extension.usage?.(handle, subject.context());
    assert.ok(first !== undefined && second !== undefined);
    assert.ok(Number.isFinite(first.billedSeconds) && first.billedSeconds >= 0);
    assert.ok(second.billedSeconds >= first.billedSeconds);
  }),
];
