import assert from 'node:assert/strict';
import { claimTests } from '../conformance-test.ts';
import { finish, runProgram, spawnSpec } from '../run-program.ts';

const test = claimTests('services', ({ services }) => services === true);

export const serviceTests = [
  test('programs and files of every service can be reached by its name', async (subject) => {
    const { services } = (await subject.shared()).session;
    assert.ok(services !== undefined);
    assert.ok(services.names.includes(services.first), 'The default is not one of its services.');
    const { capabilities } = subject;
    const session = services.session(services.first);
    assert.equal((await runProgram(session, ['/bin/true'])).code, 0);
    assert.equal(session.files !== undefined, capabilities.files);
  }),

  test(
    'a process of a service is found again by its id alone',
    async (subject) => {
      const { session } = await subject.shared();
      for (const name of session.services?.names ?? []) {
        const started = await session.services
          ?.session(name)
          .spawn(spawnSpec(['/bin/sh', '-c', 'echo kept; exit 7'], { background: true }));
        assert.ok(started !== undefined);
        await started.detach();
        const again = await session.attach?.(started.id, 0);
        assert.ok(again !== undefined);
        const { code, stdout } = await finish(again);
        assert.equal(code, 7);
        assert.equal(stdout.toString(), 'kept\n');
      }
    },
    { shell: true, applies: ({ background }) => background },
  ),

  test('the log of a service ends when it is not followed, and lets go when it is', async (subject) => {
    const { services } = (await subject.shared()).session;
    assert.ok(services !== undefined);
    const log = await services.logs(services.first, { tail: 10, follow: false });
    for await (const _ of log.output);
    assert.equal((await log.exit).code, 0);
    const followed = await services.logs(services.first, { tail: 0, follow: true });
    await followed.detach();
    for await (const _ of followed.output);
  }),
];
