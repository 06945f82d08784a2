import type { ServiceLog, ServiceLogOptions } from '../../core/ports/session.ts';
import type { Caller } from '../../core/tenancy/caller.ts';
import { explainLoss } from '../lifecycle/explain-loss.ts';
import type { Followed } from './exec-in-sandbox.ts';
import type { Use } from './use-sandbox.ts';
import { openSandbox, servicesOf } from './use-sandbox.ts';

/** What a service of a sandbox wrote; of the default one when none is named. Looking at it is not use. */
export async function readServiceLog(
  use: Use,
  caller: Caller,
  id: string,
  service: string | undefined,
  options: ServiceLogOptions,
): Promise<Followed<ServiceLog>> {
  const { sandbox, session } = await openSandbox(use, caller, id, false);
  const services = servicesOf(sandbox, session, service);
  const startedAt = use.deps.clock.now();
  const process = await services.logs(service ?? services.first, options);
  return { process, startedAt, endedAt: null, explain: (error) => explainLoss(use.deps, sandbox, error) };
}
