import type { ProviderKey } from '../../contract/tenancy/provider-key.ts';
import { isoTime, isoTimeOrNull } from '../../core/ports/clock.ts';
import type { ProviderKeyRecord } from '../../core/tenancy/provider-key.ts';

/** Presents a provider key, never its secret, sealed or not. */
export function presentProviderKey(key: ProviderKeyRecord): ProviderKey {
  return {
    provider_key_id: key.id,
    extension: key.extensionId,
    scope: key.workspaceId === null ? 'platform' : 'workspace',
    workspace_id: key.workspaceId,
    label: key.label,
    hint: key.hint,
    state: key.state,
    created_at: isoTime(key.createdAt),
    checked_at: isoTime(key.checkedAt),
    refused_at: isoTimeOrNull(key.refusedAt),
  };
}
