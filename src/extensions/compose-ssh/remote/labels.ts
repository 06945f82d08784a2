import { z } from 'zod';
import type { ProvisionSpec, Stamp } from '../../../core/ports/extension.ts';

export const LABEL = {
  owner: 'io.sandboxer.owner',
  sandboxUid: 'io.sandboxer.sandbox-uid',
  attemptId: 'io.sandboxer.attempt-id',
  sandboxId: 'io.sandboxer.sandbox-id',
  profile: 'io.sandboxer.profile',
  service: 'io.sandboxer.service',
} as const;

export function labelsOf({ stamp, sandboxId, recipe }: ProvisionSpec): Record<string, string> {
  return {
    [LABEL.owner]: stamp.owner,
    [LABEL.sandboxUid]: stamp.sandboxUid,
    [LABEL.attemptId]: stamp.attemptId,
    [LABEL.sandboxId]: sandboxId,
    [LABEL.profile]: `${recipe.profileId}@${recipe.profileVersion}`,
  };
}

const Marker = z.object({
  owner: z.string(),
  sandbox_uid: z.string(),
  attempt_id: z.string(),
  created_at: z.number().nullable(),
});

/** Returns the labels as a file beside the stack, which exists before the first request to the engine. */
export function markerOf(stamp: Stamp, now: number): string {
  return JSON.stringify({
    owner: stamp.owner,
    sandbox_uid: stamp.sandboxUid,
    attempt_id: stamp.attemptId,
    created_at: now,
  });
}

export function readMarker(text: string): { stamp: Stamp; createdAt: number | null } | null {
  try {
    const { owner, sandbox_uid, attempt_id, created_at } = Marker.parse(JSON.parse(text));
    return { stamp: { owner, sandboxUid: sandbox_uid, attemptId: attempt_id }, createdAt: created_at };
  } catch {
    return null;
  }
}
