import { z } from 'zod';
import { Consumer } from '../sandboxes/sandbox.ts';
import { Actor } from '../values/state.ts';

export const AuditEntry = z
  .strictObject({
    seq: z.number().int(),
    at: z.string(),
    workspace_id: z.string(),
    key_id: z.string().nullable().describe('`null` for the local administrator.'),
    actor: Actor,
    consumer: Consumer,
    action: z.string().describe('The operationId of what was asked for.'),
    target: z.string(),
    outcome: z.string().describe('`ok`, or the code of the error.'),
    request_id: z.string().nullable(),
    details: z.record(z.string(), z.unknown()),
  })
  .meta({ id: 'AuditEntry' });
export type AuditEntry = z.infer<typeof AuditEntry>;
