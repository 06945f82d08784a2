import { z } from 'zod';
import { VolumeMounts } from '../assets/volume.ts';
import { IsolationLevel, Persistence, Requirements } from '../extensions/capability.ts';
import { Placement, RoutePolicy } from '../routing/route.ts';
import { boundedList } from '../values/bounded.ts';
import { DurationSeconds } from '../values/duration.ts';
import { ExtensionId, ProfileId, ProfileVersion } from '../values/ids.ts';
import { EnvVars, Labels } from '../values/json.ts';
import { SizeMb } from '../values/size.ts';
import { SecretRef } from './secret.ts';

export const EgressRule = z
  .strictObject({
    host: z
      .string()
      .min(1)
      .max(253)
      .regex(
        /^(?:\*\.)?[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?$/,
        'A lower-case host name; a leading "*." matches one label.',
      ),
    port: z.number().int().min(1).max(65_535).default(443),
    methods: boundedList(
      z
        .array(z.string().regex(/^[A-Z]{3,10}$/))
        .min(1)
        .max(16),
      16,
    ).optional(),
    paths: boundedList(z.array(z.string().startsWith('/').max(512)).max(64), 64).optional(),
    binaries: boundedList(z.array(z.string().startsWith('/').max(512)).max(64), 64).optional(),
    credential: z
      .string()
      .max(128)
      .optional()
      .describe('Name of a secret that the broker injects for this destination.'),
  })
  .meta({ id: 'EgressRule' });
export type EgressRule = z.infer<typeof EgressRule>;

export const NetworkPolicy = z
  .strictObject({
    default: z.enum(['deny', 'allow']).default('deny'),
    egress: boundedList(z.array(EgressRule).max(256), 256).default([]),
  })
  .meta({ id: 'NetworkPolicy' });
export type NetworkPolicy = z.infer<typeof NetworkPolicy>;

export const WorkspaceMode = z
  .enum(['mirror', 'remote-canonical', 'remote'])
  .transform((mode) => (mode === 'remote' ? 'remote-canonical' : mode));
export const WorkspaceAccess = z.enum(['none', 'ro', 'rw']);

/**
 * The least memory. With less nothing runs: a runtime needs four processes to start one program, the engines take no limit of
 * memory below this. Refused here, it is no backend's failure.
 */
export const LEAST_MEMORY_MB = 6;
export const LEAST_PIDS = 6;

export const Resources = z
  .strictObject({
    cpu: z.number().positive().max(1024).nullable().default(null),
    memory_mb: SizeMb.refine(
      (mebibytes) => mebibytes >= LEAST_MEMORY_MB,
      `A sandbox needs at least ${LEAST_MEMORY_MB}MB of memory.`,
    )
      .nullable()
      .default(null)
      .describe(`At least ${LEAST_MEMORY_MB}MB.`),
    disk_mb: SizeMb.nullable().default(null),
    pids: z
      .number()
      .int()
      .min(LEAST_PIDS, `A sandbox needs at least ${LEAST_PIDS} processes.`)
      .max(4_194_304)
      .nullable()
      .default(null),
    open_files: z.number().int().positive().max(1_048_576).nullable().default(null),
    gpu: z.string().max(64).nullable().default(null),
  })
  .meta({ id: 'Resources' });
export type Resources = z.infer<typeof Resources>;

export const Scope = z.enum(['session', 'agent', 'shared']);
export type Scope = z.infer<typeof Scope>;

export const Setup = z
  .strictObject({
    instructions: z
      .string()
      .max(65_536)
      .default('')
      .describe('Prose for the user of the sandbox; never executed.'),
    run: boundedList(z.array(z.string().max(65_536)).max(64), 64)
      .default([])
      .describe('Shell commands executed once, in order, before `ready`.'),
    variables: EnvVars.default({}).describe('Plain text, visible to every program inside.'),
    secret_refs: boundedList(z.array(SecretRef).max(64), 64).default([]),
    request_secrets: z
      .enum(['declared', 'any'])
      .default('declared')
      .describe('Whether a request may name secrets that this profile does not.'),
  })
  .meta({ id: 'Setup' });

/** The program and its arguments. */
const WarmProgram = boundedList(z.array(z.string().min(1).max(4096)).min(1).max(64), 64);

/** The fields that a request may change besides ttl, labels, inputs and route. */
export const Overridable = z.enum(['image', 'resources', 'network', 'workspace', 'idle_reap']);

export const Profile = z
  .strictObject({
    id: ProfileId,
    version: ProfileVersion,
    description: z.string().max(2000).default(''),
    extension: ExtensionId.nullable()
      .default(null)
      .describe('Pins the backend; leave it out and let `requires` and `route` choose.'),
    image: z
      .string()
      .max(512)
      .default('host')
      .describe('`host`, an image name (`@sha256:…`), or the engine’s own reference.'),
    requires: Requirements.default({}),
    isolation: z
      .strictObject({
        level: IsolationLevel,
        no_new_privs: z
          .boolean()
          .optional()
          .describe(
            'No program inside gets more rights than its caller: set-uid files and `sudo` do nothing.',
          ),
      })
      .default({ level: 'container' }),
    persistence: Persistence.default('ephemeral'),
    network: NetworkPolicy.default({ default: 'deny', egress: [] }),
    workspace: z
      .strictObject({
        mode: WorkspaceMode.default('remote-canonical'),
        access: WorkspaceAccess.default('rw'),
      })
      .default({ mode: 'remote-canonical', access: 'rw' }),
    scope_default: Scope.default('session'),
    warm: z
      .union([z.boolean(), z.strictObject({ program: WarmProgram })])
      .optional()
      .describe(
        '`false`: always a sandbox that was started for its user, never one that was running before. With `program`, a sandbox that is started ahead on `ext.local` runs it once: under the limits of this profile, for 10 seconds at most, without secrets, and for its workspace alone. Without it no program of an image runs before somebody asks.',
      ),
    ttl: z
      .strictObject({
        default: DurationSeconds,
        max: DurationSeconds,
        idle_reap: DurationSeconds.nullable().default(null),
      })
      .refine((ttl) => ttl.default <= ttl.max, {
        path: ['default'],
        message: 'ttl.default must not exceed ttl.max.',
      })
      .default({ default: 14_400, max: 86_400, idle_reap: null }),
    resources: Resources.default({
      cpu: null,
      memory_mb: null,
      disk_mb: null,
      pids: null,
      open_files: null,
      gpu: null,
    }),
    volumes: VolumeMounts.optional().describe('Volumes of the workspace, and where they are mounted.'),
    setup: Setup.default({
      instructions: '',
      run: [],
      variables: {},
      secret_refs: [],
      request_secrets: 'declared',
    }),
    placement: Placement.default({ prefer: [], fallback: [] }),
    reachability: z
      .strictObject({
        tunnel: z.string().max(64).nullable().default(null),
        identity: z.string().max(64).nullable().default(null),
      })
      .default({ tunnel: null, identity: null }),
    route: RoutePolicy.default({}),
    overridable: boundedList(z.array(Overridable).max(16), 16).default([]),
    labels: Labels.default({}),
    metadata: z
      .strictObject({
        cost_class: z.enum(['self-hosted', 'saas-metered']).default('self-hosted'),
        latency_class: z.enum(['instant', 'fast', 'standard', 'slow']).default('standard'),
      })
      .default({ cost_class: 'self-hosted', latency_class: 'standard' }),
  })
  .meta({ id: 'Profile', description: 'A named, versioned recipe for a sandbox.' });
/** A profile as it is used: every default filled in, durations in seconds, sizes in mebibytes. */
export type Profile = z.infer<typeof Profile>;
/** A profile as a person writes it. */
export type ProfileInput = z.input<typeof Profile>;

/** A profile in the catalogue, with what stands in its way. */
export const ProfileEntry = z
  .strictObject({
    profile: z.record(z.string(), z.unknown()),
    source: z.string().describe('The file it came from, or `api`.'),
    available: z.boolean(),
    unavailable_reason: z.string().nullable(),
    fingerprint: z.string(),
  })
  .meta({ id: 'ProfileEntry' });

/** The result that a push of the profile would have. */
export const ProfileVerdict = z
  .strictObject({
    valid: z.literal(true),
    profile: z.record(z.string(), z.unknown()).describe('With every default filled in.'),
    published: z.boolean().describe('The very same is published already.'),
    available: z.boolean(),
    unavailable_reason: z.string().nullable(),
  })
  .meta({ id: 'ProfileVerdict' });

/** A document that could not become a profile: where it stands and what to do about it. */
export const ProfileIssue = z
  .strictObject({
    file: z.string(),
    line: z.number().int().nullable(),
    column: z.number().int().nullable(),
    field: z.string(),
    problem: z.string(),
    remedy: z.string(),
  })
  .meta({ id: 'ProfileIssue' });
export type ProfileIssue = z.infer<typeof ProfileIssue>;
