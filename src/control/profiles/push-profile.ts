import { SandboxerError } from '../../contract/errors/errors.ts';
import type { Profile } from '../../contract/profiles/profile.ts';
import type { Tx } from '../../core/ports/store/store.ts';
import { canonicalJson } from '../../core/recipe/canonical-json.ts';
import type { Caller } from '../../core/tenancy/caller.ts';
import { requireScope } from '../../core/tenancy/caller.ts';
import type { Control } from '../control.ts';
import type { ControlPorts } from '../ports/control-ports.ts';
import { auditedTransaction } from '../requests/audit.ts';

/** Whether the very same is published already. Another content under its version is refused. */
export async function publishedAlready(
  tx: Tx,
  deps: ControlPorts,
  caller: Caller,
  { profile, source }: { readonly profile: Profile; readonly source: Readonly<Record<string, unknown>> },
): Promise<boolean> {
  const { id, version } = profile;
  const shipped = deps
    .catalogue(caller.workspaceId)
    .list()
    .some((entry) => entry.source !== 'api' && entry.profile.id === id && entry.profile.version === version);
  const known = await tx.profiles.get(caller.workspaceId, id, version);
  if (!shipped && !known) return false;
  if (!shipped && known && canonicalJson(known.source) === canonicalJson(source)) return true;
  throw new SandboxerError('SBX_PROFILE_IMMUTABLE', `${id}@${version} exists with another content.`, {
    field: 'version',
  });
}

interface PushProfile {
  readonly profile: Profile;
  readonly source: Readonly<Record<string, unknown>>;
}

/** Publishes a version. The same content again is the same version; other content under the same version is refused. */
export async function pushProfile(
  control: Control,
  caller: Caller,
  { profile, source }: PushProfile,
): Promise<{ created: boolean }> {
  requireScope(caller, 'profiles');
  const subject = { action: 'pushProfile', target: `${profile.id}@${profile.version}` };
  const outcome = await auditedTransaction(
    control,
    caller,
    { label: 'push-profile', subject },
    async (tx) => {
      if (await publishedAlready(tx, control, caller, { profile, source })) return { created: false };
      const now = control.clock.now();
      await tx.profiles.insert({ workspaceId: caller.workspaceId, profile, source, createdAt: now });
      await tx.events.append([
        {
          id: control.ids.next('evt'),
          at: now,
          type: 'profile.pushed',
          workspaceId: caller.workspaceId,
          // Workspaces may push the same version: subject and sequence together are unique in the feed of the server.
          subject: `workspace:${caller.workspaceId}:profile:${profile.id}@${profile.version}`,
          subjectSeq: 1,
          sandboxUid: null,
          sandboxId: null,
          generation: null,
          state: null,
          previousState: null,
          actor: caller.actor,
          consumer: {},
          details: { profile: profile.id, version: profile.version },
        },
      ]);
      return { created: true };
    },
  );
  await control.profilesChanged();
  return outcome;
}
