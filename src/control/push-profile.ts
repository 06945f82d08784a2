import { SandboxerError } from '../contract/errors.ts';
import type { Profile } from '../contract/profile.ts';
import type { Caller } from '../core/caller.ts';
import { requireScope } from '../core/caller.ts';
import { canonicalJson } from '../core/canonical-json.ts';
import { auditedTransaction } from './audit.ts';
import type { ControlDeps } from './deps.ts';

/** Publishes a version. The same content again is the same version; another content under it is refused. */
export async function pushProfile(
  deps: ControlDeps,
  caller: Caller,
  profile: Profile,
  source: Readonly<Record<string, unknown>>,
): Promise<{ created: boolean }> {
  requireScope(caller, 'profiles');
  const shipped = deps
    .catalogue(caller.workspaceId)
    .list()
    .find(
      (entry) =>
        entry.source !== 'api' &&
        entry.profile.id === profile.id &&
        entry.profile.version === profile.version,
    );
  const immutable = () =>
    new SandboxerError(
      'SBX_PROFILE_IMMUTABLE',
      `${profile.id}@${profile.version} exists with another content.`,
      { field: 'version' },
    );
  if (shipped) throw immutable();
  const subject = { action: 'pushProfile', target: `${profile.id}@${profile.version}` };
  const outcome = await auditedTransaction(deps, caller, 'push-profile', subject, async (tx) => {
    const known = await tx.profiles.get(caller.workspaceId, profile.id, profile.version);
    if (known) {
      if (canonicalJson(known.source) !== canonicalJson(source)) throw immutable();
      return { created: false };
    }
    const now = deps.clock.now();
    await tx.profiles.insert({ workspaceId: caller.workspaceId, profile, source, createdAt: now });
    await tx.events.append([
      {
        id: deps.ids.next('evt'),
        at: now,
        type: 'profile.pushed',
        workspaceId: caller.workspaceId,
        subject: `profile:${profile.id}@${profile.version}`,
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
  });
  await deps.profilesChanged();
  return outcome;
}
