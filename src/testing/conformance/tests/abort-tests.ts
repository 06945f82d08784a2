import assert from 'node:assert/strict';
import { claimTests } from '../conformance-test.ts';
import type { Subject } from '../subject.ts';

const test = claimTests('abort');

async function within(subject: Subject, work: Promise<unknown>): Promise<'resolved' | 'rejected'> {
  const limitMs = subject.options.abortWithinMs ?? 20_000;
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), limitMs);
  const outcome = await Promise.race([
    work.then(
      () => 'resolved' as const,
      () => 'rejected' as const,
    ),
    new Promise<'late'>((resolve) => late.signal.addEventListener('abort', () => resolve('late'))),
  ]);
  clearTimeout(timer);
  assert.notEqual(outcome, 'late', `It went on for ${limitMs} ms after it was aborted.`);
  return outcome as 'resolved' | 'rejected';
}

async function sweptAway(subject: Subject, spec: ReturnType<Subject['spec']>): Promise<void> {
  // The aborted call may still make its sandbox late: a later sweep finds it.
  const gone = await subject.eventually(async () => {
    const report = await subject.teardown(spec);
    return report.gone && (await subject.ownedAttempts(spec.stamp.owner)).length === 0;
  });
  assert.ok(gone, 'Something was left behind.');
}

export const abortTests = [
  test('a call that is aborted before it begins does nothing', async (subject) => {
    const spec = subject.spec({ owner: `${subject.owner}-aborted` });
    const work = subject.extension.provision(spec, subject.context(AbortSignal.abort()));
    assert.equal(await within(subject, work), 'rejected');
    await sweptAway(subject, spec);
  }),

  test('provision aborted half-way is swept by teardown with the same stamp', async (subject) => {
    for (const delayMs of [0, 1, 3, 10, 30]) {
      const spec = subject.spec({ owner: `${subject.owner}-half-way-${delayMs}` });
      const abort = new AbortController();
      const work = subject.extension.provision(spec, subject.context(abort.signal));
      setTimeout(() => abort.abort(), delayMs);
      await within(subject, work);
      await sweptAway(subject, spec);
    }
  }),

  test('waitReady honours its signal', async (subject) => {
    const spec = subject.spec();
    const handle = await subject.extension.provision(spec, subject.context());
    const abort = new AbortController();
    const work = subject.extension.waitReady(handle, subject.context(abort.signal));
    abort.abort();
    await within(subject, work);
    await subject.teardown(spec, handle);
  }),

  test('teardown aborted half-way can be repeated', async (subject) => {
    const { spec, handle } = await subject.establish();
    const abort = new AbortController();
    const target = { stamp: spec.stamp, handle };
    const work = subject.extension.teardown(target, subject.context(abort.signal));
    setTimeout(() => abort.abort(), 1);
    await within(subject, work);
    assert.equal((await subject.teardown(spec, handle)).gone, true);
  }),
];
