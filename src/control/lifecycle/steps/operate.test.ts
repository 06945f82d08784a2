import { expect, it } from 'vitest';
import { StepWorld } from '../../../../tests/support/step-world.ts';
import type { SandboxOperation } from '../../../core/lifecycle/sandbox.ts';
import type { FaultRule } from '../../../extensions/saas-stub/wire/protocol.ts';
import { operateStep } from './operate.ts';
import { probeStep } from './probe.ts';
import { provisionStep } from './provision.ts';

const REFUSED: FaultRule = { op: 'pause', kind: 'error_before', params: { says: true } };

function operation(kind: SandboxOperation['kind']): SandboxOperation {
  return {
    id: 'op_1',
    kind,
    actor: 'agt',
    requestedAt: 0,
    finishedAt: null,
    tries: 0,
    error: null,
    snapshotId: null,
  };
}

async function ready(wanted: SandboxOperation, faults: readonly FaultRule[] = []): Promise<StepWorld> {
  const world = await StepWorld.with('provisioning', [{}], { faults });
  await world.hold();
  await world.take(provisionStep(world.deps, await world.subject(), await world.attempt(), true));
  await world.take(probeStep(world.deps, await world.subject(), await world.attempt()));
  await world.patch({ operation: wanted });
  return world;
}

async function operate(world: StepWorld, wanted: SandboxOperation) {
  return world.take(operateStep(world.deps, await world.subject(), wanted));
}

it('operate: a pause that succeeded makes the sandbox paused and ends the operation', async () => {
  const wanted = operation('pause');
  const world = await ready(wanted);
  expect(await operate(world, wanted)).toEqual({});
  const sandbox = await world.sandbox();
  expect(sandbox.state).toBe('paused');
  expect(sandbox.operation).toMatchObject({ id: 'op_1', finishedAt: world.clock.at });
});

it('operate: an error that may pass is tried again after a pause', async () => {
  const wanted = operation('pause');
  const world = await ready(wanted, [{ op: 'pause', kind: 'rate_limited', params: {} }]);
  const { retryAt } = await operate(world, wanted);
  expect(retryAt).toBeGreaterThan(world.clock.at);
  expect((await world.sandbox()).operation).toMatchObject({ tries: 1, finishedAt: null });
});

it('operate: after operationTries failures the operation ends with the error', async () => {
  const wanted = operation('pause');
  const world = await ready(wanted, [REFUSED]);
  let current = wanted;
  for (let tries = 0; tries < world.deps.settings.operationTries; tries += 1) {
    await operate(world, current);
    current = (await world.sandbox()).operation as SandboxOperation;
  }
  expect((await world.sandbox()).state).toBe('ready');
  expect(current.finishedAt).toBe(world.clock.at);
  expect(current.error).not.toBeNull();
});

it('operate: an operation that is no longer pending changes nothing', async () => {
  const wanted = operation('pause');
  const world = await ready(wanted);
  await world.patch({ operation: { ...wanted, id: 'op_2' } });
  await operate(world, wanted);
  expect(await world.sandbox()).toMatchObject({
    state: 'ready',
    operation: { id: 'op_2', finishedAt: null },
  });
});
