/** Requests and answers of the stub: plain JSON, the same over HTTP and in process. */
import { z } from 'zod';

export const StubName = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$/, 'A name has letters, digits, ".", "_" and "-".');

const FAULT_OPS = [
  'create',
  'get',
  'delete',
  'list',
  'pause',
  'resume',
  'snapshot',
  'delete_snapshot',
  'restore',
  'fork',
  'extend',
  'exec',
  'usage',
  'health',
] as const;
export type FaultOp = (typeof FAULT_OPS)[number];

export const FAULT_KINDS = [
  'slow',
  'error_before',
  'error_after',
  'lost_reply',
  'late_create',
  'rate_limited',
  'quota',
  'auth',
  'stuck_provisioning',
  'stuck_teardown',
  'partial_teardown',
  'disappears',
  'duplicate_webhook',
  'skewed_clock',
] as const;

/** A rule for one failure. Without `times` it never ends; `match` narrows it to one object, or one of several stubs. */
export const FaultRule = z.strictObject({
  op: z.enum(FAULT_OPS),
  kind: z.enum(FAULT_KINDS),
  times: z.number().int().min(1).optional(),
  match: z.strictObject({ name: z.string().optional(), extension: z.string().optional() }).optional(),
  params: z
    .strictObject({
      ms: z.number().int().min(-86_400_000).max(86_400_000).optional(),
      retry_after_seconds: z.number().int().min(0).max(86_400).optional(),
      deletes: z.number().int().min(1).max(1000).optional().describe('How many more deletes a volume takes.'),
      hang: z.boolean().optional().describe('Keep the connection open and silent instead of cutting it.'),
      says: z.boolean().optional().describe('Whether an error reply states if the object exists.'),
    })
    .default({}),
});
export type FaultRule = z.infer<typeof FaultRule>;

const StampLabels = z.strictObject({
  sandbox_uid: z.string().min(1).max(200),
  attempt_id: z.string().min(1).max(200),
  owner: z.string().min(1).max(200),
});
export type StampLabels = z.infer<typeof StampLabels>;

/** Variables and secrets for the inside. They go to the machine and are stored nowhere else. */
const Boot = z.strictObject({
  env: z.record(z.string(), z.string()),
  files: z.array(z.strictObject({ name: z.string().regex(/^[A-Za-z0-9_]{1,128}$/), content: z.string() })),
});
export type Boot = z.infer<typeof Boot>;

const makes = {
  name: StubName,
  labels: StampLabels,
  ends_at: z.number().int(),
  boot: Boot,
  faults: z.array(FaultRule).max(32),
};
const names = { name: StubName, owner: z.string().min(1).max(200) };
const waits = { ...names, timeout_ms: z.number().int().min(0).max(60_000) };

export const StubRequest = z.discriminatedUnion('op', [
  z.strictObject({ op: z.literal('health') }),
  z.strictObject({ op: z.literal('create'), ...makes }),
  z.strictObject({ op: z.literal('restore'), ...makes, snapshot_id: StubName }),
  z.strictObject({ op: z.literal('fork'), ...makes, source: StubName }),
  z.strictObject({ op: z.literal('get'), ...names }),
  z.strictObject({ op: z.literal('wait_running'), ...waits }),
  z.strictObject({ op: z.literal('wait_gone'), ...waits }),
  z.strictObject({ op: z.literal('delete'), ...names }),
  z.strictObject({
    op: z.literal('list'),
    owner: z.string().min(1).max(200),
    cursor: StubName.nullable(),
    limit: z.number().int().min(1).max(1000),
  }),
  z.strictObject({ op: z.literal('pause'), ...names }),
  z.strictObject({ op: z.literal('resume'), ...names }),
  z.strictObject({ op: z.literal('extend'), ...names, ends_at: z.number().int() }),
  z.strictObject({ op: z.literal('usage'), ...names }),
  /** Runs no program: answers whether a command could be run now. */
  z.strictObject({ op: z.literal('exec'), ...names }),
  z.strictObject({
    op: z.literal('snapshot'),
    ...names,
    snapshot_id: StubName,
    title: z.string().nullable(),
  }),
  z.strictObject({
    op: z.literal('delete_snapshot'),
    snapshot_id: StubName,
    owner: z.string().min(1).max(200),
  }),
]);
export type StubRequest = z.infer<typeof StubRequest>;
export type StubRequestOf<Op extends StubRequest['op']> = Extract<StubRequest, { op: Op }>;

/** Requests that make an object. */
export type MakeRequest = StubRequestOf<'create' | 'restore' | 'fork'>;

export interface StubReply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: unknown;
}

export const StubObjectState = z.enum(['creating', 'running', 'paused', 'deleting', 'volume_left', 'gone']);
export type StubObjectState = z.infer<typeof StubObjectState>;

/** An object as the stub shows it. */
export const StubObjectView = z.strictObject({
  name: StubName,
  labels: StampLabels,
  state: StubObjectState,
  created_at: z.number(),
  ends_at: z.number(),
  billed_ms: z.number().min(0),
});
export type StubObjectView = z.infer<typeof StubObjectView>;

const Remaining = z
  .array(z.strictObject({ what: z.string().max(300), reason: z.string().max(300) }))
  .max(100);

export const ObjectBody = z.strictObject({ object: StubObjectView });
/** The answer of `delete` and `wait_gone`. */
export const GoneBody = z.strictObject({ gone: z.boolean(), removed: z.boolean(), remaining: Remaining });
export const ListBody = z.strictObject({
  items: z.array(StubObjectView).max(1000),
  next_cursor: StubName.nullable(),
});
export const UsageBody = z.strictObject({ billed_ms: z.number().min(0) });
export const SnapshotBody = z.strictObject({ snapshot_id: StubName, taken_at: z.number() });
export const HealthBody = z.strictObject({ now: z.number(), objects: z.number().int() });

/** `created` says whether the object exists, and is absent when the stub does not say. */
export const ErrorBody = z.strictObject({
  error: z.strictObject({
    code: z.string().max(64),
    message: z.string().max(1000),
    created: z.boolean().optional(),
  }),
});
