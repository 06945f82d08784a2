import { expect, it } from 'vitest';
import { BACKEND, StepWorld } from '../../../../tests/support/step-world.ts';
import type { FaultRule } from '../../../extensions/saas-stub/wire/protocol.ts';
import { provisionStep } from './provision.ts';
import { teardownStep } from './teardown.ts';

const CONDEMNED = { state: 'condemned', creation: 'maybe_created' } as const;
const ALWAYS_REFUSED: FaultRule = { op: 'delete', kind: 'error_before', params: { says: true } };

async function teardown(world: StepWorld, n = 1) {
  return world.take(teardownStep(world.deps, await world.attempt(n)));
}

async function provisioned(): Promise<StepWorld> {
  const world = await StepWorld.with('provisioning', [{}]);
  await world.take(provisionStep(world.deps, await world.subject(), await world.attempt(), true));
  return world;
}

it('teardown: an attempt that the backend confirms gone is gone', async () => {
  const world = await provisioned();
  expect(await world.attempt()).toMatchObject({ state: 'provisioned', error: null });
  expect(await teardown(world)).toEqual({});
  expect(await world.attempt()).toMatchObject({ state: 'gone', teardownError: null });
});

it('teardown: an attempt that never reached its backend is gone by its stamp alone', async () => {
  const world = await StepWorld.with('destroying', [CONDEMNED]);
  expect(await teardown(world)).toEqual({});
  expect((await world.attempt()).state).toBe('gone');
});

it('teardown: a backend that fails is asked again later, and what it may hold stays condemned', async () => {
  const world = await StepWorld.with('destroying', [CONDEMNED], { faults: [ALWAYS_REFUSED] });
  const { retryAt } = await teardown(world);
  expect(retryAt).toBeGreaterThan(world.clock.at);
  expect(await world.attempt()).toMatchObject({ state: 'condemned', teardownTries: 1, stuckSince: null });
  expect((await world.attempt()).teardownError).not.toBeNull();
});

it('teardown: after stuckAfterTries failures one event reports it, and the step is still due again', async () => {
  const world = await StepWorld.with('destroying', [CONDEMNED], { faults: [ALWAYS_REFUSED] });
  const { stuckAfterTries } = world.deps.settings;
  for (let tries = 1; tries < stuckAfterTries; tries += 1) await teardown(world);
  expect(await world.eventTypes()).toEqual([]);
  for (let more = 0; more < 3; more += 1) expect((await teardown(world)).retryAt).toBeDefined();
  expect(await world.eventTypes()).toEqual(['sandbox.teardown_stuck']);
  expect((await world.attempt()).stuckSince).toBe(world.clock.at);
});

it('teardown: pauses between tries grow', async () => {
  const world = await StepWorld.with('destroying', [CONDEMNED], { faults: [ALWAYS_REFUSED] });
  const pauses = [];
  for (let tries = 0; tries < 4; tries += 1) {
    pauses.push(((await teardown(world)).retryAt as number) - world.clock.at);
  }
  expect(pauses).toEqual([...pauses].sort((a, b) => a - b));
  expect(pauses[3]).toBeGreaterThan(pauses[0] as number);
});

it('teardown: while provisioning, an ambiguous attempt that cannot be removed fails the sandbox', async () => {
  const error = { code: 'SBX_TIMEOUT', detail: 'No answer.', remedy: 'Wait.' };
  const world = await StepWorld.with('provisioning', [{ ...CONDEMNED, error }], { faults: [ALWAYS_REFUSED] });
  for (let tries = 1; tries < world.deps.settings.ambiguousTries; tries += 1) await teardown(world);
  expect((await world.sandbox()).state).toBe('provisioning');
  await teardown(world);
  expect(await world.sandbox()).toMatchObject({
    state: 'failed',
    failure: { code: 'SBX_TIMEOUT', creation: 'maybe_created', backend: BACKEND },
  });
  expect((await world.attempt()).state).toBe('condemned');
});

it('teardown: another attempt that still runs keeps the sandbox provisioning', async () => {
  const world = await StepWorld.with('provisioning', [CONDEMNED, { n: 2 }], { faults: [ALWAYS_REFUSED] });
  for (let tries = 0; tries < world.deps.settings.ambiguousTries + 1; tries += 1) await teardown(world);
  expect((await world.sandbox()).state).toBe('provisioning');
});
