import { expect, test } from 'vitest';
import { PreviewSlots } from './preview-slots.ts';

test('a preview has a limit of visits, and others have their own', () => {
  const slots = new PreviewSlots(2);
  const release = slots.take('a');
  slots.take('a');
  expect(() => slots.take('a')).toThrow('SBX_RATE_LIMITED');
  slots.take('b');
  release();
  slots.take('a');
  expect(() => slots.take('a')).toThrow('SBX_RATE_LIMITED');
});
