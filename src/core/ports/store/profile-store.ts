import type { Profile } from '../../../contract/profiles/profile.ts';

export interface PushedProfile {
  readonly workspaceId: string;
  readonly profile: Profile;
  /** The document as it was sent: what the profile is rebuilt from when the schema grows. */
  readonly source: Readonly<Record<string, unknown>>;
  readonly createdAt: number;
}

export interface ProfileStore {
  get(workspaceId: string, id: string, version: string): Promise<PushedProfile | null>;
  insert(profile: PushedProfile): Promise<void>;
  list(workspaceId: string | null): Promise<readonly PushedProfile[]>;
}
