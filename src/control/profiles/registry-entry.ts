import type { CapabilityEntry } from '../../contract/extensions/capability-entry.ts';
import {
  CAPABILITY_DOMAIN,
  CAPABILITY_ID,
  CAPABILITY_NAME,
  CAPABILITY_OWNER,
  CAPABILITY_STATUS,
  CAPABILITY_SUMMARY,
  OPERATIONS,
} from '../../contract/extensions/capability-entry.ts';
import { API_VERSION } from '../../contract/values/version.ts';
import type { Caller } from '../../core/tenancy/caller.ts';
import type { Control } from '../control.ts';
import { listProfiles } from './list-profiles.ts';

/** Returns this installation's entry: its offer to this caller as things are now. */
export async function registryEntry(
  control: Control,
  caller: Caller,
  { version }: { readonly version: string },
): Promise<CapabilityEntry> {
  const { profiles } = await listProfiles(control, caller);
  return {
    id: CAPABILITY_ID,
    version,
    name: CAPABILITY_NAME,
    status: CAPABILITY_STATUS,
    owner: CAPABILITY_OWNER,
    domain: CAPABILITY_DOMAIN,
    summary: CAPABILITY_SUMMARY,
    api: { version: API_VERSION, openapi: '/v1/openapi.json' },
    operations: [...OPERATIONS],
    profiles: profiles.map(({ entry, unavailableReason }) => ({
      id: entry.profile.id,
      version: entry.profile.version,
      available: unavailableReason === null,
    })),
    extensions: control.extensions
      .all()
      .map(({ header: { id, title, capabilities, price } }) => ({ id, title, capabilities, price })),
  };
}
