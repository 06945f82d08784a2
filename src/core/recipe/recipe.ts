import type { VolumeMount } from '../../contract/assets/volume.ts';
import type { Requirements } from '../../contract/extensions/capability.ts';
import type { Mount } from '../../contract/profiles/inputs.ts';
import type { NetworkPolicy, Profile, Resources, Scope } from '../../contract/profiles/profile.ts';
import type { SecretRef } from '../../contract/profiles/secret.ts';
import type { RoutePolicy } from '../../contract/routing/route.ts';
import type { Json } from '../../contract/values/json.ts';
import type { TreeInput } from './tree-input.ts';

/** A volume by its name, and by the id that it was found to have. */
export interface MountedVolume extends VolumeMount {
  readonly volumeId: string | null;
  readonly extensionId: string | null;
}

/**
 * The complete description of what to build: profile and request merged and clamped. Stored with the sandbox, so that `recreate`,
 * `restore` and recovery build the same thing whatever happened to the profile since.
 */
export interface Recipe {
  readonly profileId: string;
  readonly profileVersion: string;
  readonly pinnedExtension: string | null;
  readonly image: string;
  /** The stored image, if `image` names one, and the backend that has it. */
  readonly keptImage?: { readonly imageId: string; readonly digest: string; readonly extensionId: string };
  readonly volumes?: readonly MountedVolume[];
  readonly isolation: Profile['isolation']['level'];
  readonly noNewPrivs?: boolean;
  /** The program that may run in a sandbox of this recipe that was started ahead. */
  readonly warmProgram?: readonly string[];
  readonly persistence: Profile['persistence'];
  readonly network: NetworkPolicy;
  readonly workspace: Profile['workspace'];
  readonly resources: Resources;
  readonly variables: Readonly<Record<string, string>>;
  readonly setupRun: readonly string[];
  readonly instructions: string;
  readonly instructionsRef: string | null;
  readonly secretRefs: readonly SecretRef[];
  readonly inputs: Readonly<Record<string, Json>>;
  /** File trees to start with. */
  readonly trees: readonly TreeInput[];
  /** Directories of this machine, for its administrator. */
  readonly mounts: readonly Mount[];
  readonly elevated: boolean;
  readonly scope: Scope;
  readonly ttlSeconds: number;
  readonly maxTtlSeconds: number;
  readonly idleReapSeconds: number | null;
  readonly requires: Requirements;
  readonly route: RoutePolicy;
  readonly placement: Profile['placement'];
  readonly reachability: Profile['reachability'];
}
