import assert from 'node:assert/strict';
import { claimTests } from '../conformance-test.ts';
import { runProgram } from '../run-program.ts';
import type { Subject } from '../subject.ts';

const test = claimTests('dead_man', ({ dead_man }) => dead_man !== 'none');

async function exists(subject: Subject, attemptId: string, owner: string): Promise<boolean> {
  return (await subject.ownedAttempts(owner)).includes(attemptId);
}

export const deadManTests = [
  test('it ends by itself when its time has come, and not before', async (subject) => {
    const lifeMs = subject.shortLifeMs;
    const endsAt = subject.clock.now() + lifeMs;
    const { spec, session } = await subject.establish({ endsAt, owner: `${subject.owner}-dead-man` });
    const { attemptId, owner } = spec.stamp;
    if (subject.clock.now() < endsAt - 500) {
      assert.equal((await runProgram(session, ['/bin/true'])).code, 0, 'It ended too soon.');
    }
    const within = lifeMs + subject.graceMs;
    const ended = await subject.eventually(async () => !(await exists(subject, attemptId, owner)), within);
    assert.ok(ended, 'It is still there.');
    assert.ok(subject.clock.now() >= endsAt - 100, 'It ended too soon.');
    assert.equal((await subject.teardown(spec)).gone, true);
  }),

  test(
    'its end can be moved',
    async (subject) => {
      const endsAt = subject.clock.now() + subject.shortLifeMs;
      const { spec, handle, session } = await subject.establish({
        endsAt,
        owner: `${subject.owner}-extended`,
      });
      await subject.extension.extendLife?.(handle, endsAt + 60_000, subject.context());
      await subject.clock.sleep(Math.max(0, endsAt - subject.clock.now()) + 1_000);
      assert.equal((await runProgram(session, ['/bin/true'])).code, 0, 'It ended at its first time.');
      await subject.extension.extendLife?.(handle, subject.clock.now() + 500, subject.context());
      const { attemptId, owner } = spec.stamp;
      const ended = await subject.eventually(
        async () => !(await exists(subject, attemptId, owner)),
        subject.graceMs + 500,
      );
      assert.ok(ended, 'It did not end at its new, earlier time.');
    },
    { applies: ({ dead_man }) => dead_man === 'extendable' },
  ),
];
