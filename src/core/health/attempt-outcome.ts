import type { ErrorCode } from '../../contract/errors.ts';
import { ERRORS } from '../../contract/errors.ts';
import type { AttemptOutcome, AttemptRecord } from '../attempt.ts';

/**
 * What an error says of the backend it came from. A refused or exhausted key of a workspace or of the platform is set
 * aside by itself, so that it says nothing of the backend under other keys.
 */
export function outcomeOfError(
  code: string,
  { providerKeyId }: Pick<AttemptRecord, 'providerKeyId'>,
): AttemptOutcome {
  const fault = ERRORS[code as ErrorCode]?.fault ?? 'backend';
  const isOfKey = fault === 'key' || fault === 'capacity';
  return isOfKey && providerKeyId !== null ? 'caller' : fault;
}
