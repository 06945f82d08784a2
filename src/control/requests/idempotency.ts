import { SandboxerError } from '../../contract/errors/errors.ts';
import type { Tx } from '../../core/ports/store/store.ts';
import type { Caller } from '../../core/tenancy/caller.ts';
import type { ControlPorts } from '../ports/control-ports.ts';

interface Repetition {
  readonly key: string | undefined;
  readonly digest: string;
  readonly kind: 'sandbox' | 'snapshot';
}

/** Returns what the same idempotency key made before: an id of this kind, or `null` the first time. */
export async function replayedResult(
  tx: Tx,
  caller: Caller,
  { key, digest, kind }: Repetition,
): Promise<string | null> {
  if (key === undefined) return null;
  const known = await tx.idempotency.get(caller.workspaceId, key);
  if (!known) return null;
  const [knownKind, id] = known.result.split(':') as [string, string];
  if (known.requestDigest === digest && knownKind === kind) return id;
  throw new SandboxerError(
    'SBX_IDEMPOTENCY_MISMATCH',
    'This Idempotency-Key was used for a different request.',
    {
      creation: 'not_created',
    },
  );
}

interface RememberedResult {
  readonly key: string | undefined;
  readonly digest: string;
  readonly result: string;
}

export async function rememberResult(
  tx: Tx,
  deps: ControlPorts,
  caller: Caller,
  { key, digest: requestDigest, result }: RememberedResult,
): Promise<void> {
  if (key === undefined) return;
  await tx.idempotency.insert({
    workspaceId: caller.workspaceId,
    key,
    requestDigest,
    result,
    createdAt: deps.clock.now(),
  });
}
