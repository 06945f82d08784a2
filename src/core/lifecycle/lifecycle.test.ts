import { describe, expect, it } from 'vitest';
import { SandboxState } from '../../contract/values/state.ts';
import { assertMove, canMove, isLiving, TRANSITIONS } from './lifecycle.ts';

describe('the state table', () => {
  it('the state table accepts destroying from every state that is not destroyed', () => {
    for (const state of SandboxState.options) {
      expect(canMove(state, 'destroying')).toBe(state !== 'destroyed' && state !== 'destroying');
    }
  });

  it('the state table leads from every state to destroyed', () => {
    const reaches = new Set<string>(['destroyed']);
    for (let grown = true; grown; ) {
      grown = false;
      for (const { from, to } of TRANSITIONS) {
        if (reaches.has(to) && !reaches.has(from)) grown = !!reaches.add(from);
      }
    }
    expect([...reaches].sort()).toEqual([...SandboxState.options].sort());
  });

  it('destroyed has no way out, and only recreate leads from a dead state to a living one', () => {
    expect(TRANSITIONS.filter(({ from }) => from === 'destroyed')).toEqual([]);
    const back = TRANSITIONS.filter(({ from, to }) => !isLiving(from) && isLiving(to));
    expect(back.map(({ from, to }) => `${from}>${to}`)).toEqual(['destroying>requested']);
  });

  it('the state table lists each move once', () => {
    expect(new Set(TRANSITIONS.map(({ from, to }) => `${from}>${to}`)).size).toBe(TRANSITIONS.length);
  });

  it('the state table refuses what it does not list, by name', () => {
    expect(() => assertMove('destroyed', 'ready')).toThrow(/destroyed cannot become ready/);
  });
});
