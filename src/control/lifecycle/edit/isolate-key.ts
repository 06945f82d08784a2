import type { AttemptRecord } from '../../../core/lifecycle/attempt.ts';
import type { Tx } from '../../../core/ports/store/store.ts';
import type { ControlPorts } from '../../ports/control-ports.ts';
import type { BackendFailure } from './backend-error.ts';

export interface RefusedCall {
  /** The attempt whose call failed; `undefined` where it is no longer known. */
  readonly attempt: Pick<AttemptRecord, 'providerKeyId'> | undefined;
  readonly failure: Pick<BackendFailure, 'code'>;
  readonly workspaceId: string;
}

/**
 * Sets aside a key that its vendor refuses, which says nothing of the backend: nothing more is routed to that key until it is
 * tested or replaced, and other keys go on. One event is written.
 */
export async function isolateKey(
  tx: Tx,
  deps: ControlPorts,
  { attempt, failure, workspaceId }: RefusedCall,
): Promise<void> {
  if (failure.code !== 'SBX_BACKEND_AUTH' || !attempt || attempt.providerKeyId === null) return;
  const key = await tx.providerKeys.get(attempt.providerKeyId);
  if (key?.state !== 'active') return;
  const now = deps.clock.now();
  await tx.providerKeys.update({ ...key, state: 'refused', refusedAt: now });
  const id = deps.ids.next('evt');
  await tx.events.append([
    {
      id,
      at: now,
      type: 'provider_key.refused',
      workspaceId: key.workspaceId ?? workspaceId,
      subject: `provider-key:${key.id}:${id}`,
      subjectSeq: 1,
      sandboxUid: null,
      sandboxId: null,
      generation: null,
      state: null,
      previousState: null,
      actor: 'atm',
      consumer: {},
      details: {
        provider_key_id: key.id,
        extension: key.extensionId,
        scope: key.workspaceId === null ? 'platform' : 'workspace',
      },
    },
  ]);
}
