import type { ErrorCode } from '../../contract/errors/errors.ts';
import { ERRORS } from '../../contract/errors/errors.ts';
import { LOCAL_HOST } from '../hosts/host.ts';
import type { AttemptOutcome, AttemptRecord } from '../lifecycle/attempt.ts';

/**
 * Judges a backend by an error of it. A refused or exhausted key of a workspace or of the platform is set aside by itself, so
 * that it says nothing of the backend under other keys. A registered host that refuses our key is that host's fault alone: the
 * backend goes on with other hosts.
 */
export function outcomeOfError(
  code: string,
  { providerKeyId, hostId }: Pick<AttemptRecord, 'providerKeyId' | 'hostId'>,
): AttemptOutcome {
  const fault = ERRORS[code as ErrorCode]?.fault ?? 'backend';
  const isOfKey = fault === 'key' || fault === 'capacity';
  if (isOfKey && providerKeyId !== null) return 'caller';
  return fault === 'key' && hostId !== null && hostId !== LOCAL_HOST ? 'host' : fault;
}
