import { z } from 'zod';
import { IsolationLevel } from './capability.ts';

const IdMapping = z
  .strictObject({
    inside: z.number().int(),
    outside: z.number().int(),
    count: z.number().int(),
  })
  .meta({ id: 'IdMapping' });

/** A limit as read back from the kernel; `null` when there is none. */
const Limit = z.number().int().nullable();

/** The barriers of the kernel around one sandbox, read from the kernel and not from what was asked for. */
export const IsolationFacts = z.strictObject({
  level: IsolationLevel,
  runtime: z.strictObject({ name: z.string(), version: z.string() }),
  kernel: z.string().describe('Release of the kernel that the wall stands in.'),
  namespaces: z
    .array(
      z.strictObject({
        kind: z.string(),
        own: z.boolean().describe('Not the one of the server.'),
        id: z.string(),
      }),
    )
    .describe('Those that could be read.'),
  uid_map: z.array(IdMapping),
  gid_map: z.array(IdMapping),
  seccomp: z.strictObject({
    mode: z.enum(['none', 'strict', 'filter']),
    filters: z.number().int().nullable(),
  }),
  no_new_privs: z.boolean(),
  capabilities: z.strictObject({
    bounding: z.array(z.string()).describe('No program inside can ever have more than these.'),
    effective: z.array(z.string()).describe('Of the first process inside.'),
  }),
  lsm: z.strictObject({
    active: z.array(z.string()).describe('Security modules of the kernel, where they can be read.'),
    label: z.string().nullable(),
  }),
  limits: z.strictObject({
    version: z.enum(['v1', 'v2', 'none']).describe('Of the control groups.'),
    memory_bytes: Limit,
    swap_bytes: Limit.describe('Memory and swap together on v1.'),
    pids: Limit,
    cpu_millis: Limit.describe('Thousandths of a processor.'),
    open_files: Limit.describe('Of each program.'),
    disk_bytes: Limit.optional().describe('Of what it may write, where the backend tells.'),
    core_bytes: Limit,
    frozen: z.boolean(),
  }),
  network: z.strictObject({ interfaces: z.array(z.string()) }),
  root: z.strictObject({ type: z.string(), read_only: z.boolean() }).nullable(),
  not_enforced: z.array(z.string()).describe('Missing protections that this level usually has.'),
});
export type IsolationFacts = z.infer<typeof IsolationFacts>;

export const IsolationReport = IsolationFacts.extend({
  sandbox_id: z.string(),
  extension: z.string(),
}).meta({ id: 'IsolationReport' });
export type IsolationReport = z.infer<typeof IsolationReport>;
