import assert from 'node:assert/strict';
import type { ResourceName } from '../../../contract/extensions/capability.ts';
import type { Resources } from '../../../contract/profiles/profile.ts';
import { claimTests } from '../conformance-test.ts';
import { defaultRecipe } from '../default-recipe.ts';
import { runProgram, runShell } from '../run-program.ts';
import type { Established, Subject } from '../subject.ts';

const test = claimTests('resources');

async function limited(subject: Subject, limits: Partial<Resources>): Promise<Established> {
  const { resources } = defaultRecipe(subject.capabilities);
  return await subject.establish({ recipe: { resources: { ...resources, ...limits } } });
}

/** Requires that the limit holds, and that the sandbox outlives the attempt to pass it. */
async function holds(subject: Subject, limits: Partial<Resources>, attempt: string): Promise<void> {
  const { session, spec } = await limited(subject, limits);
  const { code } = await runShell(session, attempt, { timeoutSeconds: 60 });
  assert.notEqual(code, 0, 'It got more than its limit.');
  const alive = await subject.eventually(async () => {
    const result = await runProgram(session, ['/bin/true']).catch(() => null);
    return result?.code === 0;
  }, 30_000);
  assert.ok(alive, 'The sandbox can no longer be used.');
  await subject.teardown(spec);
}

/** Requires that the limit holds, and that the sandbox ends as a whole, as it declares: its state must not say that it runs. */
async function endsAll(subject: Subject, limits: Partial<Resources>, attempt: string): Promise<void> {
  const { session, spec } = await limited(subject, limits);
  const result = await runShell(session, attempt, { timeoutSeconds: 60 }).catch(() => null);
  assert.notEqual(result?.code, 0, 'It got more than its limit.');
  const ended = await subject.eventually(async () => {
    const found = (await subject.owned()).find(({ stamp }) => stamp.attemptId === spec.stamp.attemptId);
    return found === undefined || found.condition === 'ended' || found.condition === 'stopped';
  }, 30_000);
  assert.ok(ended, 'It is told as running.');
  await subject.teardown(spec);
}

const declares = (name: ResourceName) => ({
  shell: true,
  applies: ({ resources }: { resources: ResourceName[] }) => resources.includes(name),
});

/** Returns the seconds of processor time in the two lines that `times` prints. */
function cpuSeconds(text: string): number {
  return [...text.matchAll(/(\d+)m([\d.]+)s/g)].reduce(
    (sum, [, min, sec]) => sum + Number(min) * 60 + Number(sec),
    0,
  );
}

export const resourceTests = [
  test(
    'cpu: more is not had',
    async (subject) => {
      const { session, spec } = await limited(subject, { cpu: 0.25 });
      const script = 'end=$(( $(date +%s) + 5 )); while [ $(date +%s) -lt $end ]; do :; done; times';
      const begun = Date.now();
      const { stdout } = await runShell(session, script);
      const share = cpuSeconds(stdout.toString()) / ((Date.now() - begun) / 1000);
      assert.ok(share <= 0.4, `It had ${share.toFixed(2)} of a processor instead of 0.25.`);
      await subject.teardown(spec);
    },
    declares('cpu'),
  ),

  test(
    'pids: a fork bomb is bounded',
    (subject) =>
      holds(
        subject,
        { pids: 64 },
        'i=0; while [ $i -lt 300 ]; do sleep 3 & i=$((i+1)); done; [ "$(jobs -p | wc -l)" -ge 300 ]',
      ),
    declares('pids'),
  ),

  test(
    'memory_mb: more is not had',
    async (subject) => {
      const judge = subject.capabilities.memory_overrun === 'sandbox' ? endsAll : holds;
      await judge(subject, { memory_mb: 64 }, 'dd if=/dev/zero of=/dev/null bs=200M count=1');
    },
    declares('memory_mb'),
  ),

  test(
    'disk_mb: more is not had',
    (subject) => holds(subject, { disk_mb: 32 }, 'dd if=/dev/zero of=big bs=1048576 count=128'),
    declares('disk_mb'),
  ),

  test(
    'open_files: more is not had',
    async (subject) => {
      const { session, spec } = await limited(subject, { open_files: 100 });
      const { stdout } = await runShell(session, 'ulimit -Hn');
      const hard = Number(stdout.toString());
      assert.ok(hard > 0 && hard <= 100, `The hard limit is ${stdout.toString().trim()}.`);
      await subject.teardown(spec);
    },
    declares('open_files'),
  ),
];
