import { describe, expect, it } from 'vitest';
import { canaryText } from '../../cli/output/canary-view.ts';
import { judgeCanary } from './canary.ts';

const result = {
  extensionId: 'ext.x',
  at: 1,
  ok: true,
  readyMs: 2_000,
  execMs: 30,
  goneMs: 400,
  problem: null,
};
const shown = (standing: ReturnType<typeof judgeCanary>) =>
  canaryText({
    extension: 'ext.x',
    status: standing.status,
    detail: standing.detail,
    since: null,
    checked_at: '',
    failures: standing.failures,
    ready_ms: standing.readyMs,
    exec_ms: standing.execMs,
    destroyed_ms: standing.goneMs,
  });

describe('canaries', () => {
  it('canary: the notes of a sandbox that worked are reported', () => {
    const note = 'The stack runs on a rootless engine.';
    expect(shown(judgeCanary(undefined, { ...result, notes: [note] }))).toMatch(
      /^ready .* gone [^.]*\. The stack runs/,
    );
    expect(shown(judgeCanary(undefined, result))).not.toContain('It works');
  });

  it('canary: a failure is reported by its problem alone', () => {
    const failed = { ...result, ok: false, problem: 'It broke.', notes: ['A note.'] };
    expect(judgeCanary(undefined, failed).detail).toBe('It broke.');
  });
});
