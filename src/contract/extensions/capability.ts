import { z } from 'zod';
import { boundedList } from '../values/bounded.ts';

/** Weakest first: a profile names the least it relies on, a backend may give more. */
export const IsolationLevel = z.enum(['none', 'policy', 'container', 'gvisor', 'microvm']);
export type IsolationLevel = z.infer<typeof IsolationLevel>;

/** Weakest first. `proxy-env` asks programs to behave; only `l3` and `l7` make them. */
export const EgressEnforcement = z.enum(['none', 'proxy-env', 'l3', 'l7']);
export type EgressEnforcement = z.infer<typeof EgressEnforcement>;

/** Weakest first. */
export const SnapshotKind = z.enum(['none', 'recreate-only', 'filesystem', 'memory']);
export type SnapshotKind = z.infer<typeof SnapshotKind>;

export const CredentialDelivery = z.enum(['broker', 'file', 'env']);
export type CredentialDelivery = z.infer<typeof CredentialDelivery>;

export const Persistence = z.enum(['ephemeral', 'persistent', 'checkpoint']);
export type Persistence = z.infer<typeof Persistence>;

export const Hosting = z.enum(['self-hosted', 'saas']);
export type Hosting = z.infer<typeof Hosting>;

export const ResourceName = z.enum(['cpu', 'memory_mb', 'disk_mb', 'pids', 'open_files', 'gpu']);
export type ResourceName = z.infer<typeof ResourceName>;

/** The victim when more memory is used than `memory_mb` allows. Weakest first. */
export const MemoryOverrun = z.enum(['sandbox', 'process']);
export type MemoryOverrun = z.infer<typeof MemoryOverrun>;

const LevelDifference = z.strictObject({
  resources: z.array(ResourceName).optional(),
  memory_overrun: MemoryOverrun.optional(),
});

/** The features that a backend has and the limits that it enforces. A feature not declared here is refused, never attempted. */
export const CapabilityVector = z
  .strictObject({
    isolation: z.array(IsolationLevel).min(1).describe('Every level this backend can give.'),
    egress: EgressEnforcement.describe('How strongly an egress allowlist is enforced.'),
    deny_all: z.boolean().describe('Whether a sandbox without any network can be had.'),
    open_network: z.boolean().describe('Whether a sandbox with unrestricted egress can be had.'),
    credentials: z.array(CredentialDelivery).describe('How a secret may reach the inside.'),
    dead_man: z
      .enum(['none', 'fixed', 'extendable'])
      .describe('Whether the backend ends a sandbox by itself at a time we set.'),
    snapshot: SnapshotKind,
    snapshot_destructive: z.boolean().describe('Whether taking a snapshot stops the source.'),
    fork: z.boolean(),
    pause: z.enum(['none', 'frozen', 'stopped']),
    persistence: z.array(Persistence).min(1),
    exec: z.boolean(),
    pty: z.boolean(),
    background: z
      .boolean()
      .describe('Whether a process can be left running and reattached with its recent output.'),
    files: z.boolean(),
    watch: z.boolean(),
    ports: z.boolean(),
    ssh: z.boolean(),
    resources: z.array(ResourceName).describe('Limits that are enforced.'),
    memory_overrun: MemoryOverrun.optional().describe(
      'Target of the kill when a sandbox exceeds its memory; `process` where it is left out.',
    ),
    levels: z
      .partialRecord(IsolationLevel, LevelDifference)
      .optional()
      .describe('Entries that replace those of the vector at a level of isolation.'),
    images: z.array(z.enum(['host', 'imported', 'reference', 'none'])).min(1),
    regions: z.array(z.string().max(64)),
    gpu: z.array(z.string().max(64)),
    max_ttl_seconds: z.number().int().positive().nullable(),
    pricing: z.enum(['free', 'infrastructure', 'metered']),
    latency_class: z.enum(['instant', 'fast', 'standard', 'slow']),
    hosting: Hosting,
    services: z
      .boolean()
      .optional()
      .describe('Whether it is made of services, each with programs, files and a log of its own.'),
    volumes: z.boolean().optional().describe('Whether named volumes can be kept and mounted.'),
    no_new_privs: z
      .boolean()
      .optional()
      .describe('Whether `isolation.no_new_privs` can be put on everything inside.'),
    host_root: z.boolean().describe('Whether code inside may run as uid 0 of the host.'),
    trusted_code_only: z
      .boolean()
      .optional()
      .describe('Whether it is for stacks you trust: root inside may be root of the host.'),
    read_only_workspace: z
      .boolean()
      .optional()
      .describe('Whether a workspace can be read-only inside, even for root.'),
    mounts: z.boolean().optional().describe('Whether directories of this machine can be mounted.'),
    elevated: z.boolean().describe('Whether elevated inputs are understood.'),
    demo: z.boolean().describe('Isolates nothing: only `profile.stub-*` may land here.'),
  })
  .meta({ id: 'CapabilityVector' });
export type CapabilityVector = z.infer<typeof CapabilityVector>;

/** Hard constraints on the vector. `route.constraints` is another spelling of the same thing. */
export const Requirements = z
  .strictObject({
    isolation: IsolationLevel.optional(),
    egress: EgressEnforcement.optional(),
    snapshot: SnapshotKind.optional(),
    fork: z.boolean().optional(),
    pause: z.boolean().optional(),
    pty: z.boolean().optional(),
    ports: z.boolean().optional(),
    watch: z.boolean().optional(),
    ssh: z.boolean().optional(),
    dead_man: z.boolean().optional(),
    persistence: Persistence.optional(),
    hosting: Hosting.optional(),
    region: z.string().max(64).optional(),
    data_residency: z
      .string()
      .max(64)
      .optional()
      .describe('A region, such as `eu`: every region the backend may use must lie in it.'),
    gpu: z.string().max(64).optional(),
    resources: boundedList(z.array(ResourceName).max(16), 16)
      .optional()
      .describe('Limits that must be enforced.'),
    memory_overrun: MemoryOverrun.optional().describe(
      '`process`: more memory than it may have must not end the sandbox as a whole.',
    ),
  })
  .meta({ id: 'Requirements' });
export type Requirements = z.infer<typeof Requirements>;
