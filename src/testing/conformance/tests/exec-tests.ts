import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { claimTests } from '../conformance-test.ts';
import { beatsOn, heartbeat, stillBeats } from '../heartbeat.ts';
import { finish, runProgram, runShell, shellArgv, spawnSpec } from '../run-program.ts';

const test = claimTests('exec', ({ exec }) => exec);
const shell = { shell: true };
const AWKWARD = [
  'a b',
  "it's",
  '"quoted"',
  '$HOME',
  '`id`',
  '\\',
  'new\nline',
  '',
  '*',
  '--',
  '-n',
  'zażółć 😀',
  '\t',
];

export const execTests = [
  test('the exit code is the program’s own', async (subject) => {
    const { session } = await subject.shared();
    assert.equal((await runProgram(session, ['/bin/true'])).code, 0);
    assert.equal((await runProgram(session, ['/bin/false'])).code, 1);
    for (const code of [2, 7, 42, 255]) {
      const { exit } = await runProgram(session, ['/bin/sh', '-c', `exit ${code}`]);
      assert.deepEqual(exit, { code, signal: null, timed_out: false, out_of_memory: false });
    }
  }),

  test('a program that is not found ends with 127 and says so', async (subject) => {
    const { session } = await subject.shared();
    const { code, stderr } = await runProgram(session, ['no-such-program-anywhere']);
    assert.equal(code, 127);
    assert.ok(stderr.length > 0, 'Nothing on stderr.');
  }),

  test('input arrives whole and ends', async (subject) => {
    const { session } = await subject.shared();
    const input = Buffer.concat([Buffer.from([0, 255, 10, 13, 0]), randomBytes(300_000)]);
    const { stdout, code } = await runProgram(session, ['cat'], { input });
    assert.equal(code, 0);
    assert.ok(stdout.equals(input), `${stdout.length} of ${input.length} bytes came back, or other ones.`);
  }),

  test('without input a program reads its end at once', async (subject) => {
    const { session } = await subject.shared();
    assert.deepEqual((await runProgram(session, ['cat'])).stdout.length, 0);
  }),

  test('8 MB of output arrive whole, with offsets that count them', async (subject) => {
    const { session } = await subject.shared();
    const input = randomBytes(8 * 1_048_576);
    const { stdout, chunks } = await runProgram(session, ['cat'], { input });
    assert.ok(stdout.equals(input), `${stdout.length} of ${input.length} bytes came back, or other ones.`);
    let offset = 0;
    for (const chunk of chunks) {
      assert.equal(chunk.offset, offset);
      offset += 'data' in chunk ? chunk.data.length : chunk.missing;
    }
  }),

  test('20 at once keep to themselves', async (subject) => {
    const { session } = await subject.shared();
    const words = Array.from({ length: 20 }, (_, n) => `word-${n}-${randomBytes(8).toString('hex')}`);
    const results = await Promise.all(words.map((input) => runProgram(session, ['cat'], { input })));
    assert.deepEqual(
      results.map(({ stdout }) => stdout.toString()),
      words,
    );
  }),

  test('a signal kills it, and twice is no error', async (subject) => {
    const { session } = await subject.shared();
    const process = await session.spawn(spawnSpec(['sleep', '60']));
    await process.kill('SIGKILL');
    const { exit } = await finish(process);
    assert.deepEqual({ code: exit.code, signal: exit.signal }, { code: 137, signal: 'SIGKILL' });
    await process.kill('SIGTERM');
  }),

  test('a timeout ends it and says so', async (subject) => {
    const { session } = await subject.shared();
    const begun = Date.now();
    const { exit } = await runProgram(session, ['sleep', '600'], { timeoutSeconds: 1 });
    assert.equal(exit.timed_out, true);
    assert.ok(exit.code > 128, `The code is ${exit.code}.`);
    assert.ok(Date.now() - begun < 60_000, 'It took too long.');
  }),

  test(
    'a signal that it sends itself is 128 + n',
    async (subject) => {
      const { session } = await subject.shared();
      const { exit } = await runShell(session, 'kill -TERM $$');
      assert.deepEqual({ code: exit.code, signal: exit.signal }, { code: 143, signal: 'SIGTERM' });
    },
    shell,
  ),

  test(
    'stdout and stderr are apart and each in order',
    async (subject) => {
      const { session } = await subject.shared();
      const script = 'i=0; while [ $i -lt 2000 ]; do echo out $i; echo err $i >&2; i=$((i+1)); done';
      const { stdout, stderr } = await runShell(session, script);
      const lines = (word: string) => Array.from({ length: 2000 }, (_, n) => `${word} ${n}\n`).join('');
      assert.equal(stdout.toString(), lines('out'));
      assert.equal(stderr.toString(), lines('err'));
    },
    shell,
  ),

  test(
    'output is bytes, not text',
    async (subject) => {
      const { session } = await subject.shared();
      const { stdout } = await runShell(session, String.raw`printf '\000\001\377\200\r\n\033'`);
      assert.deepEqual([...stdout], [0, 1, 255, 128, 13, 10, 27]);
    },
    shell,
  ),

  test(
    'arguments arrive as they are',
    async (subject) => {
      const { session } = await subject.shared();
      const argv = shellArgv(String.raw`for a in "$@"; do printf '%s\000' "$a"; done`, ...AWKWARD);
      const { stdout } = await runProgram(session, argv);
      assert.deepEqual(stdout.toString().split('\0').slice(0, -1), AWKWARD);
    },
    shell,
  ),

  test(
    'env and cwd are what was asked for',
    async (subject) => {
      const { session } = await subject.shared();
      await runShell(session, 'mkdir -p "exec cwd/inner"');
      const env = { CONFORMANCE_A: 'one two\n"three"', CONFORMANCE_B: '' };
      const script = `printf "%s|%s|" "$CONFORMANCE_A" "\${CONFORMANCE_B-unset}"; pwd`;
      const { stdout } = await runShell(session, script, { env, cwd: 'exec cwd/inner' });
      const [a, b, pwd] = stdout.toString().split('|');
      assert.deepEqual([a, b], [env.CONFORMANCE_A, '']);
      assert.ok(pwd?.endsWith('/exec cwd/inner\n'), `The directory is ${pwd}.`);
    },
    shell,
  ),

  test(
    'the recipe’s variables are there',
    async (subject) => {
      const { session, spec } = await subject.establish({
        recipe: { variables: { CONFORMANCE_VARIABLE: 'a b' } },
      });
      const { stdout } = await runShell(session, 'printf %s "$CONFORMANCE_VARIABLE"');
      assert.equal(stdout.toString(), 'a b');
      await subject.teardown(spec);
    },
    shell,
  ),

  test(
    'what cannot be executed ends with 126',
    async (subject) => {
      const { session } = await subject.shared();
      await runShell(session, 'echo plain > not-executable; chmod 644 not-executable');
      assert.equal((await runProgram(session, ['./not-executable'])).code, 126);
    },
    shell,
  ),

  test(
    'a child that keeps the output open does not keep the program',
    async (subject) => {
      const { session } = await subject.shared();
      const begun = Date.now();
      const { stdout, code } = await runShell(session, 'sleep 600 & echo started');
      assert.deepEqual([stdout.toString(), code], ['started\n', 0]);
      assert.ok(Date.now() - begun < 60_000, 'It waited for the child.');
    },
    shell,
  ),

  test(
    'a timeout kills the whole tree, daemons too',
    async (subject) => {
      const { session } = await subject.shared();
      const beat = heartbeat('timeout');
      const { exit } = await runShell(session, `${beat.daemon}; sleep 60`, { timeoutSeconds: 2 });
      assert.equal(exit.timed_out, true);
      assert.equal(await stillBeats(session, beat), false, 'The daemon lives on.');
    },
    shell,
  ),

  test(
    'a signal reaches the whole tree, daemons too',
    async (subject) => {
      const { session } = await subject.shared();
      const beat = heartbeat('kill');
      const process = await session.spawn(spawnSpec(shellArgv(`${beat.daemon}; sleep 60`)));
      assert.ok(await beatsOn(session, beat), 'The daemon did not start.');
      await process.kill('SIGKILL');
      await finish(process);
      assert.equal(await stillBeats(session, beat), false, 'The daemon lives on.');
    },
    shell,
  ),

  test(
    'a slow reader slows the program down',
    async (subject) => {
      const { session } = await subject.shared();
      const script = `i=0; while :; do dd if=/dev/zero bs=65536 count=16 2>/dev/null; i=$((i+1)); echo $i > megabytes.next; mv megabytes.next megabytes; done`;
      const process = await session.spawn(spawnSpec(shellArgv(script)));
      const written = async () =>
        Number((await runShell(session, 'cat megabytes 2>/dev/null || echo 0')).stdout.toString());
      let late = await written();
      const rests = await subject.eventually(async () => {
        const early = late;
        await sleep(1000);
        late = await written();
        return late === early && late > 0;
      }, 60_000);
      assert.ok(rests, `It wrote on while nobody read, or nothing: ${late} MB.`);
      assert.ok(late <= 64, `${late} MB were taken from it while nobody read.`);
      const reader = process.output[Symbol.asyncIterator]();
      for (let read = 0; read < (late + 2) * 1_048_576; ) {
        const { value, done } = await reader.next();
        assert.ok(done !== true, 'The output ended.');
        if ('data' in value) read += value.data.length;
      }
      assert.ok((await written()) > late, 'It did not go on when it was read.');
      await process.detach();
    },
    shell,
  ),
];
