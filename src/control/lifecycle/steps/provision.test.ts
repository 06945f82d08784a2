import { expect, it } from 'vitest';
import type { StepWorldOptions } from '../../../../tests/support/step-world.ts';
import { StepWorld } from '../../../../tests/support/step-world.ts';
import type { AttemptRecord } from '../../../core/lifecycle/attempt.ts';
import type { FaultRule } from '../../../extensions/saas-stub/wire/protocol.ts';
import { provisionStep } from './provision.ts';

const SAYS_NOTHING_MADE: FaultRule = { op: 'create', kind: 'error_before', params: { says: true } };
const LOST_REPLY: FaultRule = { op: 'create', kind: 'lost_reply', params: {} };

async function provision(options: StepWorldOptions, over: Partial<AttemptRecord> = {}, isFirstCall = true) {
  const world = await StepWorld.with('provisioning', [over], options);
  const step = provisionStep(world.deps, await world.subject(), await world.attempt(), isFirstCall);
  await world.take(step);
  return world;
}

it('provision: the handle is stored with the moment at which the backend gave it', async () => {
  const world = await provision({});
  expect(await world.attempt()).toMatchObject({
    state: 'provisioned',
    creation: 'created',
    provisionedAt: world.clock.at,
  });
  expect((await world.attempt()).handle).not.toBeNull();
});

it('provision: an error that says nothing was made ends the attempt', async () => {
  const world = await provision({ faults: [SAYS_NOTHING_MADE] });
  expect(await world.attempt()).toMatchObject({ state: 'gone', creation: 'not_created' });
  expect(await world.eventTypes()).toEqual(['sandbox.attempt_failed']);
});

it('provision: a lost reply condemns the attempt, as something may have been made', async () => {
  const world = await provision({ faults: [LOST_REPLY] });
  expect(await world.attempt()).toMatchObject({ state: 'condemned', creation: 'maybe_created' });
});

it('provision: a second call that made nothing does not vouch for the first', async () => {
  const world = await provision({ faults: [SAYS_NOTHING_MADE] }, {}, false);
  expect(await world.attempt()).toMatchObject({ state: 'condemned', creation: 'maybe_created' });
});

it('provision: what was made for a sandbox that is no longer wanted is condemned', async () => {
  const world = await StepWorld.with('provisioning', [{}]);
  const step = provisionStep(world.deps, await world.subject(), await world.attempt(), true);
  await world.move('failed');
  await world.take(step);
  expect(await world.attempt()).toMatchObject({ state: 'condemned', creation: 'created' });
});

it('provision: an attempt that was outrun is condemned and keeps the reason it has', async () => {
  const error = { code: 'SBX_CANCELLED', detail: 'Attempt 2 was ready first.' };
  const world = await provision({ faults: [LOST_REPLY] }, { outrunBy: 2, error });
  expect(await world.attempt()).toMatchObject({ state: 'condemned', error });
});

it('provision: an unknown backend fails the attempt and nothing was made', async () => {
  const world = await provision({}, { extensionId: 'ext.gone' });
  expect(await world.attempt()).toMatchObject({
    state: 'gone',
    creation: 'not_created',
    error: { code: 'SBX_UNSUPPORTED' },
  });
});
