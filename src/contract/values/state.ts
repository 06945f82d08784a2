import { z } from 'zod';

/** SPEC §3. The moves between them are data in `core/lifecycle/lifecycle.ts`. */
export const SandboxState = z
  .enum([
    'requested',
    'provisioning',
    'ready',
    'active',
    'paused',
    'expired',
    'failed',
    'destroying',
    'destroyed',
  ])
  .meta({ id: 'SandboxState', description: 'Where a sandbox is in its life.' });
export type SandboxState = z.infer<typeof SandboxState>;

/** Whether a failed call left something at the backend: what fallback may do depends on this alone (SPEC §8). */
export const Creation = z.enum(['not_created', 'maybe_created', 'created']);
export type Creation = z.infer<typeof Creation>;

/** `paused` covers both, and says which. */
export const PauseKind = z.enum(['frozen', 'stopped']);
export type PauseKind = z.infer<typeof PauseKind>;

/** Administrator, agent, automation. */
export const Actor = z.enum(['adm', 'agt', 'atm']);
export type Actor = z.infer<typeof Actor>;
