import type { AttemptRecord } from './attempt.ts';
import type { SandboxOperation, SandboxRecord } from './sandbox.ts';
import { pendingOperation } from './sandbox.ts';

/** What a sandbox needs next. The first four are database work alone; the others call the backend. */
export type Step =
  | { readonly kind: 'begin' }
  | { readonly kind: 'try-next' }
  | { readonly kind: 'start-teardown' }
  | { readonly kind: 'finish-teardown' }
  | { readonly kind: 'provision'; readonly attempt: AttemptRecord }
  | { readonly kind: 'probe'; readonly attempt: AttemptRecord }
  | { readonly kind: 'teardown'; readonly attempt: AttemptRecord }
  | { readonly kind: 'operate'; readonly operation: SandboxOperation }
  | { readonly kind: 'rest' };

const REST: Step = { kind: 'rest' };

/**
 * Level-triggered: it looks only at what is stored, so it gives the same answer after a crash as before it. While
 * provisioning, nothing new is tried until what was tried before is confirmed gone.
 */
export function nextStep(sandbox: SandboxRecord, attempts: readonly AttemptRecord[]): Step {
  const condemned = attempts.find((attempt) => attempt.state === 'condemned');
  switch (sandbox.state) {
    case 'requested':
      return { kind: 'begin' };
    case 'provisioning': {
      if (condemned) return { kind: 'teardown', attempt: condemned };
      const current = attempts.find(
        (attempt) => attempt.state === 'journalled' || attempt.state === 'provisioned',
      );
      if (!current) return { kind: 'try-next' };
      return current.state === 'journalled'
        ? { kind: 'provision', attempt: current }
        : { kind: 'probe', attempt: current };
    }
    case 'ready':
    case 'active':
    case 'paused': {
      const operation = pendingOperation(sandbox);
      if (operation) return { kind: 'operate', operation };
      return condemned ? { kind: 'teardown', attempt: condemned } : REST;
    }
    case 'expired':
      return { kind: 'start-teardown' };
    case 'failed':
      return condemned ? { kind: 'teardown', attempt: condemned } : REST;
    case 'destroying': {
      const left = attempts.find((attempt) => attempt.state !== 'gone');
      return left ? { kind: 'teardown', attempt: left } : { kind: 'finish-teardown' };
    }
    case 'destroyed':
      return REST;
  }
}
