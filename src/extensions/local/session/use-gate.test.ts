import { expect, it } from 'vitest';
import { UseGate } from './use-gate.ts';

it('a use gate shuts only while it has no users, and opens for those that wait', async () => {
  const gate = new UseGate();
  const leave = await gate.enter();
  expect(gate.shut()).toBeNull();
  leave();
  leave();
  const open = gate.shut();
  expect(open).not.toBeNull();
  expect(gate.shut()).toBeNull();
  let entered = false;
  const waiting = gate.enter().then((left) => {
    entered = true;
    return left;
  });
  await Promise.resolve();
  expect(entered).toBe(false);
  open?.();
  const second = await waiting;
  expect(gate.shut()).toBeNull();
  second();
  expect(gate.shut()).not.toBeNull();
});
