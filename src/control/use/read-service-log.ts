import type { ServiceLog, ServiceLogOptions } from '../../core/ports/session.ts';
import type { Caller } from '../../core/tenancy/caller.ts';
import type { Control } from '../control.ts';
import { explainLoss } from '../lifecycle/explain-loss.ts';
import type { Followed } from './exec-in-sandbox.ts';
import { openSandbox, servicesOf } from './use-sandbox.ts';

interface ReadServiceLog extends ServiceLogOptions {
  readonly id: string;
  readonly service: string | undefined;
}

/** Returns the output of a service of a sandbox; of the default service when none is named. Reading it is not use. */
export async function readServiceLog(
  control: Control,
  caller: Caller,
  { id, service, ...options }: ReadServiceLog,
): Promise<Followed<ServiceLog>> {
  const { sandbox, session } = await openSandbox(control, caller, { id, counts: false });
  const services = servicesOf(sandbox, session, service);
  const startedAt = control.clock.now();
  const process = await services.logs(service ?? services.first, options);
  return { process, startedAt, endedAt: null, explain: (error) => explainLoss(control, sandbox, error) };
}
