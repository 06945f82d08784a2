import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { claimTests } from '../conformance-test.ts';
import { beatsOn, heartbeat } from '../heartbeat.ts';
import { runProgram, runShell, shellArgv, spawnSpec } from '../run-program.ts';

const test = claimTests('pause', ({ pause }) => pause !== 'none');
const PAUSED_MS = 3_000;

export const pauseTests = [
  test('pause and resume say and do what is declared, twice as well as once', async (subject) => {
    const { extension, capabilities } = subject;
    const { handle, session, spec } = await subject.establish();
    assert.equal(await extension.pause?.(handle, subject.context()), capabilities.pause);
    assert.equal(await extension.pause?.(handle, subject.context()), capabilities.pause);
    assert.deepEqual(
      (await subject.ownedAttempts()).includes(spec.stamp.attemptId),
      true,
      'It is no longer listed.',
    );
    const told = async () =>
      (await subject.owned()).find(({ stamp }) => stamp.attemptId === spec.stamp.attemptId)?.paused;
    assert.notEqual(await told(), false, 'It is listed as running.');
    await extension.resume?.(handle, subject.context());
    await extension.resume?.(handle, subject.context());
    assert.notEqual(await told(), true, 'It is listed as paused.');
    await session.close();
    const { session: again } = await subject.open(spec, handle);
    assert.equal((await runProgram(again, ['/bin/true'])).code, 0);
    await subject.teardown(spec, handle);
  }),

  test(
    'nothing goes on while it is paused, and everything does afterwards',
    async (subject) => {
      const { extension } = subject;
      const { handle, session, spec } = await subject.establish();
      const beat = heartbeat('pause');
      const stamped = `while :; do date +%s >> stamps; sleep 0.2 || sleep 1; done`;
      await session.spawn(spawnSpec(shellArgv(`${beat.daemon}; ${stamped}`), { background: true }));
      const runs = async () => (await runShell(session, 'test -s stamps')).code === 0;
      assert.ok(await subject.eventually(runs), 'It did not start.');
      await extension.pause?.(handle, subject.context());
      await sleep(PAUSED_MS);
      await extension.resume?.(handle, subject.context());
      assert.ok(await beatsOn(session, beat), 'It does not go on.');
      let longest = 0;
      const wasSilent = async () => {
        const { stdout } = await runShell(session, 'cat stamps');
        const stamps = stdout.toString().trim().split('\n').map(Number);
        longest = Math.max(0, ...stamps.slice(1).map((at, n) => at - (stamps[n] ?? at)));
        return longest >= PAUSED_MS / 1000 - 1;
      };
      // The first stamp after the pause may take a moment.
      assert.ok(
        await subject.eventually(wasSilent),
        `The longest silence was ${longest} s: it went on while paused.`,
      );
      await subject.teardown(spec, handle);
    },
    { shell: true, applies: ({ pause, background }) => pause === 'frozen' && background },
  ),

  test(
    'files are still there afterwards',
    async (subject) => {
      const { extension } = subject;
      const { handle, session, spec } = await subject.establish();
      await runShell(session, 'echo kept > kept');
      await extension.pause?.(handle, subject.context());
      await extension.resume?.(handle, subject.context());
      const { session: again } = await subject.open(spec, handle);
      assert.equal((await runShell(again, 'cat kept')).stdout.toString(), 'kept\n');
      await subject.teardown(spec, handle);
    },
    { shell: true },
  ),

  test('what is paused can be torn down', async (subject) => {
    const { handle, spec } = await subject.establish({ owner: `${subject.owner}-paused` });
    await subject.extension.pause?.(handle, subject.context());
    assert.equal((await subject.teardown(spec, handle)).gone, true);
    assert.deepEqual(await subject.ownedAttempts(spec.stamp.owner), []);
  }),
];
