import type { Profile } from '../../contract/profiles/profile.ts';
import type { Caller } from '../../core/tenancy/caller.ts';
import { requireScope } from '../../core/tenancy/caller.ts';
import type { Control } from '../control.ts';
import { unavailableReason } from './list-profiles.ts';
import { publishedAlready } from './push-profile.ts';

export interface ProfileVerdict {
  readonly profile: Profile;
  /** The very same is published already. */
  readonly published: boolean;
  /** Why a create of it would be refused as things are now; `null` when it would not. */
  readonly unavailableReason: string | null;
}

interface ValidateProfile {
  readonly profile: Profile;
  readonly source: Readonly<Record<string, unknown>>;
}

/** Refuses everything that a push would refuse, and stores nothing. */
export async function validateProfile(
  control: Control,
  caller: Caller,
  { profile, source }: ValidateProfile,
): Promise<ProfileVerdict> {
  requireScope(caller, 'profiles');
  return control.store.read('validate-profile', async (tx) => ({
    profile,
    published: await publishedAlready(tx, control, caller, { profile, source }),
    unavailableReason: await unavailableReason(tx, control, caller, profile),
  }));
}
