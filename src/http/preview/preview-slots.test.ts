import { expect, test } from 'vitest';
import { PreviewSlots } from './preview-slots.ts';

test('one preview has so many visits, and others theirs', () => {
  const slots = new PreviewSlots(2);
  const release = slots.take('a');
  slots.take('a');
  expect(() => slots.take('a')).toThrow('SBX_RATE_LIMITED');
  slots.take('b');
  release();
  slots.take('a');
  expect(() => slots.take('a')).toThrow('SBX_RATE_LIMITED');
});
