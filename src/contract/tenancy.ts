import { z } from 'zod';
import { DurationSeconds } from './duration.ts';
import { OrgId, WorkspaceId } from './ids.ts';
import { Actor } from './state.ts';

export const Org = z
  .strictObject({ org_id: OrgId, name: z.string(), created_at: z.string() })
  .meta({ id: 'Org' });
export const Workspace = z
  .strictObject({ workspace_id: WorkspaceId, org_id: OrgId, name: z.string(), created_at: z.string() })
  .meta({ id: 'Workspace' });

/** What a key may do. `adm` actors have them all within their workspace; `server` reaches over all workspaces. */
export const KeyScope = z.enum(['read', 'sandboxes', 'profiles', 'credits', 'keys', 'server']);
export type KeyScope = z.infer<typeof KeyScope>;

export const CreateKeyRequest = z
  .strictObject({
    name: z.string().min(1).max(128),
    actor: Actor.default('agt'),
    scopes: z.array(KeyScope).min(1).max(8).default(['read', 'sandboxes']),
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
    created_at: z.string(),
    expires_at: z.string().nullable(),
    revoked_at: z.string().nullable(),
    last_used_at: z.string().nullable(),
  })
  .meta({ id: 'ApiKey' });
export type ApiKey = z.infer<typeof ApiKey>;

/** The secret is in this answer and nowhere else, ever. */
export const CreatedKey = ApiKey.extend({ secret: z.string() }).meta({ id: 'CreatedKey' });
