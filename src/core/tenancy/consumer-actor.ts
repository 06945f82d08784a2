import { SandboxerError } from '../../contract/errors/errors.ts';
import type { Consumer } from '../../contract/sandboxes/sandbox.ts';
import type { Caller } from './caller.ts';

/**
 * Refuses a consumer actor that the caller's key may not claim: `adm` keys may claim any, `agt` and `atm` keys any but
 * `adm`.
 */
export function requireConsumerActor({ actor }: Caller, consumer: Consumer): void {
  if (consumer.actor !== 'adm' || actor === 'adm') return;
  throw new SandboxerError('SBX_FORBIDDEN', `A key of the actor "${actor}" cannot act for "adm".`, {
    field: 'consumer.actor',
    creation: 'not_created',
    remedy: 'Name "agt" or "atm", leave it out, or use an "adm" key.',
  });
}
