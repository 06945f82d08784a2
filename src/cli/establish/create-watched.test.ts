import { expect, it } from 'vitest';
import type { CloudEvent } from '../../contract/events/event.ts';
import { progressText } from './create-watched.ts';

const told = (details: Record<string, unknown>) => progressText({ details } as unknown as CloudEvent['data']);

const none = { done: 0, total: 0 };

it('the progress line starts with the values that change, and leaves out unknown ones', () => {
  const bytes = { done: 1_500_000, total: 3_000_000 };
  const pull = { stage: 'pull', subject: 'team/tool:1' };
  expect(told({ ...pull, bytes: none, parts: none })).toBe('Pulling team/tool:1');
  expect(told({ ...pull, bytes: none, parts: { done: 0, total: 2 } })).toBe(
    'Pulling 0 of 2 layers: team/tool:1',
  );
  expect(told({ ...pull, bytes, parts: { done: 1, total: 2 } })).toMatch(
    /^Pulling 1\.[45] \w+ of [23](\.\d)? \w+, 1 of 2 layers: team\/tool:1$/,
  );
  expect(told({ stage: 'thaw', subject: 'x', bytes: none, parts: none })).toBe('thaw x');
});

it('the progress line lets no text steer the terminal', () => {
  const subject = 'team/\u001b[2Jtool\r\n:1';
  expect(told({ stage: 'pull', subject, bytes: none, parts: none })).not.toMatch(/[\u001b\r\n]/);
});
