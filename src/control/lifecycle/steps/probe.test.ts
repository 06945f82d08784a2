import { expect, it } from 'vitest';
import { BACKEND, StepWorld } from '../../../../tests/support/step-world.ts';
import type { FaultRule } from '../../../extensions/saas-stub/wire/protocol.ts';
import { probeStep } from './probe.ts';
import { provisionStep } from './provision.ts';

const GET_REFUSED: FaultRule = { op: 'get', kind: 'error_before', params: {} };

async function provisioned(faults: readonly FaultRule[] = [], others = 0): Promise<StepWorld> {
  const more = Array.from({ length: others }, (_, index) => ({ n: index + 2 }));
  const world = await StepWorld.with('provisioning', [{}, ...more], { faults });
  await world.hold();
  await world.take(provisionStep(world.deps, await world.subject(), await world.attempt(), true));
  return world;
}

async function probe(world: StepWorld) {
  return world.take(probeStep(world.deps, await world.subject(), await world.attempt()));
}

it('probe: a sandbox that answers is ready, with its meter and its event', async () => {
  const world = await provisioned();
  await probe(world);
  const sandbox = await world.sandbox();
  expect(sandbox).toMatchObject({
    state: 'ready',
    extensionId: BACKEND,
    attempt: 1,
    readyAt: world.clock.at,
  });
  expect(sandbox.handle).toEqual((await world.attempt()).handle);
  expect(await world.attempt()).toMatchObject({ state: 'won' });
  expect(await world.eventTypes()).toEqual(['sandbox.ready']);
  const meter = await world.store.read('meter', (tx) => tx.meters.get(sandbox.meterId as string));
  expect(meter).toMatchObject({ sandboxUid: sandbox.uid, closedAt: null });
});

it('probe: the attempts beside the winner are condemned in the same commit', async () => {
  const world = await provisioned([], 1);
  await probe(world);
  expect(await world.attempt(2)).toMatchObject({ state: 'condemned', outrunBy: 1 });
});

it('probe: a sandbox that does not answer is condemned, as it was made', async () => {
  const world = await provisioned([GET_REFUSED]);
  await probe(world);
  expect((await world.sandbox()).state).toBe('provisioning');
  expect(await world.attempt()).toMatchObject({ state: 'condemned', creation: 'created' });
});

it('probe: an answer for a sandbox that is no longer wanted makes nothing ready', async () => {
  const world = await provisioned();
  await world.move('failed');
  await probe(world);
  expect((await world.sandbox()).state).toBe('failed');
  expect((await world.attempt()).state).toBe('condemned');
});
