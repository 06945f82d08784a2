import type { Profile, ProfileIssue } from '../../contract/profiles/profile.ts';

export interface CatalogueProfile {
  readonly profile: Profile;
  /** The file it came from, relative to its folder, or `api`. */
  readonly source: string;
  /** Digest of the profile as it is used, overrides included. */
  readonly fingerprint: string;
}

/** The profiles that can be had, and what is wrong with those that cannot. */
export interface ProfileCatalogue {
  /** Digest of everything in it: changes when any profile does. */
  readonly version: string;
  readonly issues: readonly ProfileIssue[];
  /** Returns a profile by id and version; the latest version when none is named. Throws `SBX_PROFILE_NOT_FOUND`. */
  get(ref: string, version?: string): CatalogueProfile;
  /** Lists every version of every profile: by id, latest version first. */
  list(): readonly CatalogueProfile[];
}
