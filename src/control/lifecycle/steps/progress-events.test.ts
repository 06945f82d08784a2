import { expect, it } from 'vitest';
import type { Progress } from '../../../core/ports/extension.ts';
import { silentLog } from '../../../core/ports/log.ts';
import { memoryDatabase } from '../../../store/memory/memory-database.ts';
import { MemoryStore } from '../../../store/memory/memory-store.ts';
import { sampleAttempt, sampleSandbox, T0 } from '../../../store/suite/sample-records.ts';
import type { ControlPorts } from '../../ports/control-ports.ts';
import { ProgressEvents } from './progress-events.ts';

const UID = 'sbx_slow';

function pulled(phase: Progress['phase'], done: number): Progress {
  const parts = { done: 0, total: 2 };
  return { stage: 'pull', subject: 'team/tool:1', phase, bytes: { done, total: 9_000 }, parts };
}

async function world(state: 'provisioning' | 'ready' = 'provisioning') {
  const clock = { at: T0, now: () => clock.at, sleep: async () => {} };
  let ids = 0;
  const store = new MemoryStore(memoryDatabase());
  await store.transaction('sample', (tx) => tx.sandboxes.insert(sampleSandbox({ uid: UID, state })));
  const deps = { store, clock, log: silentLog, ids: { next: (prefix: string) => `${prefix}_${++ids}` } };
  const events = new ProgressEvents(deps as unknown as ControlPorts, sampleAttempt(UID));
  const told = () =>
    store.read('events', (tx) => tx.events.list({ workspaceId: 'default', after: 0, limit: 1_000 }));
  return { clock, events, told };
}

it('progress events report begin and end, and in between one a second', async () => {
  const { clock, events, told } = await world();
  events.tell(pulled('begun', 0));
  for (let at = 0; at < 5_000; at += 10) {
    clock.at = T0 + at;
    events.tell(pulled('going', at));
  }
  events.tell(pulled('done', 9_000));
  await events.written();
  const all = await told();
  expect(all.map(({ details }) => [details.phase, (details.bytes as { done: number }).done])).toEqual([
    ['begun', 0],
    ['going', 1_000],
    ['going', 2_000],
    ['going', 3_000],
    ['going', 4_000],
    ['done', 9_000],
  ]);
  expect(all.every(({ type, state }) => type === 'sandbox.progress' && state === 'provisioning')).toBe(true);
  expect(all.map(({ subjectSeq }) => subjectSeq)).toEqual([1, 2, 3, 4, 5, 6]);
});

it('progress events become rarer for long work, and stop for a backend that sends too many', async () => {
  const { clock, events, told } = await world();
  for (let at = 0; at < 1_800_000; at += 500) {
    clock.at = T0 + at;
    events.tell(pulled('going', at));
  }
  await events.written();
  const slow = (await told()).length;
  expect(slow).toBeGreaterThan(30);
  expect(slow).toBeLessThan(70);
  for (let n = 0; n < 10_000; n++) events.tell(pulled('begun', 0));
  await events.written();
  expect((await told()).length).toBe(200);
});

it('progress events end for a sandbox in a later state', async () => {
  const { events, told } = await world('ready');
  events.tell(pulled('begun', 0));
  await events.written();
  expect(await told()).toEqual([]);
});
