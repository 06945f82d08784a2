import assert from 'node:assert/strict';
import { claimTests } from '../conformance-test.ts';
import { expectError } from '../expect-error.ts';
import { shellArgv, spawnSpec } from '../run-program.ts';

const test = claimTests('pty', ({ pty }) => pty);
const refusal = claimTests('refusal', ({ pty, exec }) => !pty && exec);
const terminal = { cols: 80, rows: 24 };

export const terminalTests = [
  test(
    'a terminal has its size, follows a resize and gives the exit code',
    async (subject) => {
      const { session } = await subject.shared();
      const script =
        'test -t 0 && test -t 1 && test -t 2 && echo is-tty; stty size; read line; stty size; exit 6';
      const process = await session.spawn({ ...spawnSpec(shellArgv(script), { terminal }), stdin: true });
      let text = '';
      let resized = false;
      for await (const chunk of process.output) {
        assert.ok('data' in chunk && chunk.stream === 'terminal', 'A terminal has one stream.');
        text += Buffer.from(chunk.data).toString();
        if (resized || !text.includes('24 80')) continue;
        resized = true;
        await process.resize({ cols: 132, rows: 43 });
        await process.write(Buffer.from('\n'));
      }
      assert.match(text, /is-tty/);
      assert.match(text, /24 80/);
      assert.match(text, /43 132/);
      assert.equal((await process.exit).code, 6);
    },
    { shell: true },
  ),

  test(
    'interrupt typed into a terminal reaches the program',
    async (subject) => {
      const { session } = await subject.shared();
      const process = await session.spawn({
        ...spawnSpec(shellArgv('echo begun; exec sleep 60'), { terminal }),
        stdin: true,
      });
      for await (const _ of process.output) await process.write(Buffer.from([3]));
      assert.equal((await process.exit).code, 130);
    },
    { shell: true },
  ),

  refusal('a terminal that is not declared', async (subject) => {
    const { session } = await subject.shared();
    await expectError(session.spawn(spawnSpec(['/bin/true'], { terminal })), ['SBX_UNSUPPORTED']);
  }),
];
