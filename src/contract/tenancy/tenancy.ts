import { z } from 'zod';
import { RouteCeiling } from '../routing/route.ts';
import { boundedList } from '../values/bounded.ts';
import { DurationSeconds } from '../values/duration.ts';
import { OrgId, WorkspaceId } from '../values/ids.ts';
import { Actor } from '../values/state.ts';

export const Org = z
  .strictObject({ org_id: OrgId, name: z.string(), created_at: z.string() })
  .meta({ id: 'Org' });
export type Org = z.infer<typeof Org>;
export const Workspace = z
  .strictObject({
    workspace_id: WorkspaceId,
    org_id: OrgId,
    name: z.string(),
    created_at: z.string(),
    policy: RouteCeiling.nullable().describe(
      'Backends and hosts that its sandboxes may be routed to; null: any.',
    ),
  })
  .meta({ id: 'Workspace' });
export type Workspace = z.infer<typeof Workspace>;

const TenantName = z.string().min(1).max(128);
export const CreateOrgRequest = z
  .strictObject({ org_id: OrgId, name: TenantName.optional() })
  .meta({ id: 'CreateOrgRequest' });
export const CreateWorkspaceRequest = z
  .strictObject({ workspace_id: WorkspaceId, org_id: OrgId, name: TenantName.optional() })
  .meta({ id: 'CreateWorkspaceRequest' });
export const RenameTenantRequest = z.strictObject({ name: TenantName }).meta({ id: 'RenameTenantRequest' });

/** An administrator with the scope `server` names the workspace that a request acts in. */
export const WORKSPACE_HEADER = 'sandboxer-workspace';

/**
 * A right of a key. `credits` sets budgets and limits, `billing` brings money; `server` has every scope and reaches over all
 * workspaces.
 */
export const KeyScope = z.enum([
  'read',
  'sandboxes',
  'profiles',
  'credits',
  'billing',
  'keys',
  'webhooks',
  'server',
]);
export type KeyScope = z.infer<typeof KeyScope>;

export const CreateKeyRequest = z
  .strictObject({
    name: z.string().min(1).max(128),
    actor: Actor.default('agt'),
    scopes: boundedList(z.array(KeyScope).min(1).max(8), 8).default(['read', 'sandboxes']),
    expires_in: DurationSeconds.optional(),
    workspace_id: WorkspaceId.optional(),
  })
  .meta({ id: 'CreateKeyRequest' });
export type CreateKeyRequest = z.infer<typeof CreateKeyRequest>;

export const ApiKey = z
  .strictObject({
    key_id: z.string(),
    workspace_id: z.string(),
    name: z.string(),
    actor: Actor,
    scopes: z.array(KeyScope),
    rotated_from: z.string().nullable().describe('The key it replaced.'),
    line: z
      .string()
      .describe('The first key of its line of succession: budgets count all keys of a line together.'),
    made_by: z
      .string()
      .nullable()
      .describe('The line of the key that made it; `null` where the local administrator did.'),
    created_at: z.string(),
    expires_at: z.string().nullable(),
    revoked_at: z.string().nullable(),
    last_used_at: z.string().nullable(),
  })
  .meta({ id: 'ApiKey' });
export type ApiKey = z.infer<typeof ApiKey>;

/** The secret is in this answer and nowhere else, ever. */
export const CreatedKey = ApiKey.extend({ secret: z.string() }).meta({ id: 'CreatedKey' });

export const RotateKeyRequest = z
  .strictObject({
    overlap: DurationSeconds.optional().describe(
      'How long the old key goes on working; not at all when left out.',
    ),
    expires_in: DurationSeconds.optional().describe(
      'Of the new key; as long as the old one had when left out.',
    ),
  })
  .meta({ id: 'RotateKeyRequest' });
export type RotateKeyRequest = z.infer<typeof RotateKeyRequest>;

/** The caller, as the server authenticated it. */
export const WhoAmI = z
  .strictObject({
    actor: Actor,
    workspace_id: z.string(),
    org_id: z.string(),
    key_id: z.string().nullable().describe('`null` for the local administrator.'),
    key_name: z.string().nullable(),
    scopes: z.array(KeyScope),
    expires_at: z.string().nullable(),
    local: z.boolean(),
  })
  .meta({ id: 'WhoAmI' });
export type WhoAmI = z.infer<typeof WhoAmI>;
