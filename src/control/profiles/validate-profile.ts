import type { Profile } from '../../contract/profiles/profile.ts';
import type { Caller } from '../../core/tenancy/caller.ts';
import { requireScope } from '../../core/tenancy/caller.ts';
import type { ControlPorts } from '../ports/control-ports.ts';
import { unavailableReason } from './list-profiles.ts';
import { publishedAlready } from './push-profile.ts';

export interface ProfileVerdict {
  readonly profile: Profile;
  /** The very same is published already. */
  readonly published: boolean;
  /** Why a create of it would be refused as things are now; `null` when it would not. */
  readonly unavailableReason: string | null;
}

/** Everything that a push would refuse is refused; nothing is stored. */
export async function validateProfile(
  deps: ControlPorts,
  caller: Caller,
  profile: Profile,
  source: Readonly<Record<string, unknown>>,
): Promise<ProfileVerdict> {
  requireScope(caller, 'profiles');
  return deps.store.read('validate-profile', async (tx) => ({
    profile,
    published: await publishedAlready(tx, deps, caller, profile, source),
    unavailableReason: await unavailableReason(tx, deps, caller, profile),
  }));
}
