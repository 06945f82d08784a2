import { z } from 'zod';
import { VolumeMounts } from '../assets/volume.ts';
import { ErrorIssue } from '../errors/errors.ts';
import { SandboxInput, TreeSource } from '../profiles/inputs.ts';
import { NetworkPolicy, Resources, Scope, WorkspaceAccess, WorkspaceMode } from '../profiles/profile.ts';
import { RequestedSecretRef } from '../profiles/secret.ts';
import { QuoteId } from '../routing/quote.ts';
import { RoutePolicy } from '../routing/route.ts';
import { boundedList, boundedRecord } from '../values/bounded.ts';
import { DurationSeconds } from '../values/duration.ts';
import { ProfileRef, ProfileVersion, SandboxId } from '../values/ids.ts';
import { EnvVars, JsonValue, Labels } from '../values/json.ts';
import { Actor, Creation, PauseKind, SandboxState } from '../values/state.ts';

const ExternalId = z
  .string()
  .min(1)
  .max(200)
  .regex(/^[^\u0000-\u001f\u007f]+$/, 'No control characters.');

/** The requesting program, session or run, in the consumer's own terms. Every record and event has it. */
export const Consumer = z
  .strictObject({
    actor: Actor.optional(),
    harness: ExternalId.optional(),
    session_id: ExternalId.optional(),
    run_id: ExternalId.optional(),
    job_id: ExternalId.optional(),
    agent_id: ExternalId.optional(),
  })
  .meta({ id: 'Consumer' });
export type Consumer = z.infer<typeof Consumer>;

export const CreateSandboxRequest = z
  .strictObject({
    id: SandboxId.optional().describe(
      'Your own id: creating twice with the same id and the same request gives one sandbox.',
    ),
    profile: ProfileRef.default('profile.sandbox-canary'),
    profile_version: ProfileVersion.optional(),
    inputs: boundedRecord(z.record(z.string().max(128), JsonValue), 64, 'At most 64 inputs.').default({}),
    scope: Scope.optional(),
    workspace: z
      .strictObject({
        mode: WorkspaceMode.optional(),
        access: WorkspaceAccess.optional(),
        source: z
          .union([z.string().min(1).max(2048), TreeSource])
          .optional()
          .describe('First content of the workspace: an upload or a repository.'),
      })
      .optional(),
    ttl: DurationSeconds.optional(),
    idle_reap: DurationSeconds.nullable().optional(),
    route: RoutePolicy.optional(),
    consumer: Consumer.default({}),
    labels: Labels.default({}),
    image: z.string().min(1).max(512).optional(),
    resources: Resources.partial().optional(),
    volumes: VolumeMounts.optional(),
    network: NetworkPolicy.optional(),
    env: EnvVars.optional(),
    setup_metadata: z
      .strictObject({
        instructions_ref: z.string().max(2048).optional(),
        instructions: z.string().max(65_536).optional(),
        variables: EnvVars.optional(),
        secret_refs: boundedList(z.array(RequestedSecretRef).max(64), 64).optional(),
      })
      .optional(),
    quote_id: QuoteId.optional().describe(
      'The prices of this quote hold, and nothing above its maximum is charged.',
    ),
    elevated: z.boolean().default(false).describe('Audited escape hatch; needs an `adm` key.'),
  })
  .meta({ id: 'CreateSandboxRequest' });
export type CreateSandboxRequest = z.infer<typeof CreateSandboxRequest>;
export type CreateSandboxInput = z.input<typeof CreateSandboxRequest>;

/** The ways to reach a sandbox. Exec is always there; the rest where the backend has it. */
export const Reachability = z
  .strictObject({
    exec_url: z.string().nullable(),
    ssh: z
      .strictObject({
        host: z.string(),
        port: z.number().int(),
        user: z.string(),
        host_key: z.string().nullable(),
      })
      .nullable(),
    tunnel_ref: z.string().nullable(),
    endpoints: z.array(z.strictObject({ name: z.string(), port: z.number().int(), url: z.string() })),
    services: z
      .array(z.strictObject({ name: z.string(), state: z.string(), health: z.string().nullable() }))
      .describe('The services’ own health: reported, never a condition of `ready`.'),
  })
  .meta({ id: 'Reachability' });
export type Reachability = z.infer<typeof Reachability>;

export const SandboxFailure = z
  .strictObject({
    code: z.string(),
    detail: z.string(),
    remedy: z.string(),
    at: z.string(),
    creation: Creation.optional().describe(
      'Whether the attempts may have created something; leftovers are removed.',
    ),
    backend: z.string().optional().describe('Left out when the failure sums up several backends.'),
    field: z.string().optional().describe('The field of the request or document at fault.'),
    issues: z.array(ErrorIssue).optional().describe('Everything that is wrong, not only the first.'),
  })
  .meta({ id: 'SandboxFailure' });

export const Sandbox = z
  .strictObject({
    sandbox_id: z.string(),
    uid: z.string().describe('Unique over all workspaces and never reused.'),
    generation: z.number().int().describe('Counts the recreates.'),
    workspace_id: z.string(),
    state: SandboxState,
    state_since: z.string(),
    pause_kind: PauseKind.nullable(),
    profile: z.string(),
    profile_version: z.string(),
    fingerprint: z.string(),
    extension: z.string().nullable(),
    host: z.string().nullable(),
    isolation: z.string().nullable(),
    region: z
      .string()
      .nullable()
      .describe('Of the host or backend it is on: a label of the host, or what the backend declares.'),
    scope: Scope,
    labels: z.record(z.string(), z.string()),
    consumer: Consumer,
    actor: Actor,
    created_at: z.string(),
    ready_at: z.string().nullable(),
    last_activity_at: z.string().nullable(),
    expires_at: z.string(),
    max_expires_at: z.string(),
    idle_reap_seconds: z.number().int().nullable(),
    reachability: Reachability.nullable(),
    exposed_secrets: z.array(z.string()).describe('Names of secrets whose value is readable inside.'),
    elevated: z.boolean(),
    inputs: z.array(SandboxInput).describe('The file trees it started with.'),
    notes: z.array(z.string()).describe('Notes of the backend for users of this sandbox.'),
    failure: SandboxFailure.nullable(),
    teardown: z
      .strictObject({
        tries: z.number().int(),
        stuck_since: z.string().nullable(),
        last_error: z.string().nullable(),
      })
      .nullable(),
    operation: z.strictObject({ kind: z.string(), since: z.string() }).nullable(),
    reused: z.boolean().describe('Whether this answer found a living sandbox instead of making one.'),
    links: z.strictObject({
      self: z.string(),
      events: z.string(),
      exec: z.string(),
      route: z.string(),
      setup: z.string().describe('Instructions of the sandbox, and output of its setup commands.'),
    }),
  })
  .meta({ id: 'Sandbox' });
export type Sandbox = z.infer<typeof Sandbox>;

export const SandboxPage = z
  .strictObject({ items: z.array(Sandbox), next_cursor: z.string().nullable() })
  .meta({ id: 'SandboxPage' });

export const ExtendRequest = z
  .strictObject({
    ttl: DurationSeconds.describe('The new deadline is now + this, also where that is earlier.'),
  })
  .meta({ id: 'ExtendRequest' });

export const ExtendedSandbox = Sandbox.extend({
  extended: z
    .strictObject({
      previous_expires_at: z.string().describe('The deadline before; `expires_at` may be earlier.'),
      asked_expires_at: z.string().describe('Now + ttl.'),
      limited: z
        .boolean()
        .describe('The longest life of the profile ends before now + ttl: `expires_at` is `max_expires_at`.'),
    })
    .describe('Outcome for the deadline.'),
}).meta({ id: 'ExtendedSandbox' });
export type ExtendedSandbox = z.infer<typeof ExtendedSandbox>;
export const ForkRequest = z
  .strictObject({ id: SandboxId.optional(), ttl: DurationSeconds.optional(), labels: Labels.optional() })
  .meta({ id: 'ForkRequest' });
export type ForkRequest = z.infer<typeof ForkRequest>;
