import { describe, expect, it } from 'vitest';
import { SandboxState } from '../../contract/values/state.ts';
import { assertMove, canMove, isLiving, TRANSITIONS } from './lifecycle.ts';

describe('the state table', () => {
  it('accepts destroying from every state that is not destroyed', () => {
    for (const state of SandboxState.options) {
      expect(canMove(state, 'destroying')).toBe(state !== 'destroyed' && state !== 'destroying');
    }
  });

  it('leads from every state to destroyed', () => {
    const reaches = new Set<string>(['destroyed']);
    for (let grown = true; grown; ) {
      grown = false;
      for (const { from, to } of TRANSITIONS) {
        if (reaches.has(to) && !reaches.has(from)) grown = !!reaches.add(from);
      }
    }
    expect([...reaches].sort()).toEqual([...SandboxState.options].sort());
  });

  it('has no way out of destroyed and none back from the dead, but for recreate', () => {
    expect(TRANSITIONS.filter(({ from }) => from === 'destroyed')).toEqual([]);
    const back = TRANSITIONS.filter(({ from, to }) => !isLiving(from) && isLiving(to));
    expect(back.map(({ from, to }) => `${from}>${to}`)).toEqual(['destroying>requested']);
  });

  it('lists each move once', () => {
    expect(new Set(TRANSITIONS.map(({ from, to }) => `${from}>${to}`)).size).toBe(TRANSITIONS.length);
  });

  it('refuses what it does not list, by name', () => {
    expect(() => assertMove('destroyed', 'ready')).toThrow(/destroyed cannot become ready/);
  });
});
