import assert from 'node:assert/strict';
import type { OutputChunk, OutputGap, SandboxProcess, SandboxSession } from '../../../core/ports/session.ts';
import { claimTests } from '../conformance-test.ts';
import { expectError } from '../expect-error.ts';
import { finish, shellArgv, spawnSpec } from '../run-program.ts';

const test = claimTests('background', ({ background }) => background);
const shell = { shell: true };
const LINES = 30;
const COUNTING = `i=0; while [ $i -lt ${LINES} ]; do echo line $i; i=$((i+1)); sleep 0.05 || sleep 1; done; exit 5`;

async function attached(session: SandboxSession, id: string, from: number): Promise<SandboxProcess> {
  assert.ok(session.attach !== undefined);
  return await session.attach(id, from);
}

function lengthOf(chunk: OutputChunk | OutputGap): number {
  return 'data' in chunk ? chunk.data.length : chunk.missing;
}

export const backgroundTests = [
  test(
    'a process runs on when nobody is attached, and its output can be read later',
    async (subject) => {
      const { session, handle } = await subject.shared();
      const process = await session.spawn(spawnSpec(shellArgv(COUNTING), { background: true }));
      const first = await process.output[Symbol.asyncIterator]().next();
      assert.ok(first.done !== true && 'data' in first.value);
      const seen = Buffer.from(first.value.data).toString();
      await process.detach();
      const other = await subject.extension.connect(handle, subject.context());
      const listed = (await other.processes?.())?.find(({ process_id }) => process_id === process.id);
      assert.ok(listed !== undefined, 'It is not listed.');
      const rest = await finish(await attached(other, process.id, seen.length));
      const all = seen + rest.stdout.toString();
      assert.equal(all, Array.from({ length: LINES }, (_, n) => `line ${n}\n`).join(''));
      assert.equal(rest.code, 5);
      const again = await finish(await attached(other, process.id, 0));
      assert.equal(again.stdout.toString(), all, 'It cannot be read again after its end.');
      assert.equal(again.code, 5);
      await other.close();
    },
    shell,
  ),

  test(
    'output that is no longer kept is told as a gap',
    async (subject) => {
      const { session } = await subject.shared();
      const script = 'dd if=/dev/zero bs=65536 count=256 2>/dev/null; echo end; exit 3';
      const process = await session.spawn(spawnSpec(shellArgv(script), { background: true }));
      await process.detach();
      const ended = await subject.eventually(async () => {
        const all = (await session.processes?.()) ?? [];
        return all.some(({ process_id, running }) => process_id === process.id && !running);
      }, 30_000);
      assert.ok(ended, 'It did not end while nobody was attached.');
      const result = await finish(await attached(session, process.id, 0));
      const total = result.chunks.reduce((sum, chunk) => sum + lengthOf(chunk), 0);
      assert.equal(total, 16 * 1_048_576 + 4, 'Output and gap do not add up.');
      assert.ok(result.stdout.toString().endsWith('end\n'), 'The most recent output is not there.');
      assert.equal(result.code, 3);
      for (const [n, chunk] of result.chunks.entries()) {
        const before = result.chunks.slice(0, n).reduce((sum, one) => sum + lengthOf(one), 0);
        assert.equal(chunk.offset, before);
      }
    },
    shell,
  ),

  test(
    'a foreground process ends when it is detached',
    async (subject) => {
      const { session } = await subject.shared();
      const process = await session.spawn(spawnSpec(shellArgv('sleep 61')));
      await process.detach();
      const gone = await subject.eventually(async () => {
        const all = (await session.processes?.()) ?? [];
        return !all.some(({ process_id, running }) => process_id === process.id && running);
      });
      assert.ok(gone, 'It runs on.');
    },
    shell,
  ),

  test('a signal can be sent after a reconnect', async (subject) => {
    const { session } = await subject.shared();
    const process = await session.spawn(spawnSpec(['sleep', '62'], { background: true }));
    await process.detach();
    const again = await attached(session, process.id, 0);
    await again.kill('SIGTERM');
    assert.equal((await finish(again)).code, 143);
  }),

  test('an unknown process is refused', async (subject) => {
    const { session } = await subject.shared();
    await expectError(attached(session, 'no-such-process', 0), ['SBX_PROCESS_NOT_FOUND']);
  }),
];
