import { SandboxerError } from '../../contract/errors/errors.ts';
import type { Caller } from '../../core/tenancy/caller.ts';
import { requireScope } from '../../core/tenancy/caller.ts';
import type { Control } from '../control.ts';
import { auditedTransaction } from '../requests/audit.ts';
import { rewindSink } from './webhook-deliveries.ts';

interface ReplaySink {
  readonly sinkId: string;
  readonly from: number;
}

/** Delivers all kept events from a number on again, to a receiver that the configuration names. */
export async function replaySink(
  control: Control,
  caller: Caller,
  { sinkId, from }: ReplaySink,
): Promise<{ readonly from: number }> {
  requireScope(caller, 'server');
  const sink = control.sinks?.find(({ id }) => id === sinkId);
  if (sink === undefined) {
    throw new SandboxerError('SBX_NOT_FOUND', `There is no receiver ${sinkId} in the configuration.`, {
      remedy: 'List the receivers; what a webhook did not take is replayed at the webhook.',
    });
  }
  if (!sink.configured) {
    throw new SandboxerError('SBX_UNSUPPORTED', `${sinkId} is not configured.`, {
      remedy: 'Name it in the configuration of the server.',
    });
  }
  const subject = { action: 'replaySink', target: sinkId, details: { from } };
  const result = await auditedTransaction(control, caller, { label: 'replay', subject }, (tx) =>
    rewindSink(tx, sinkId, from),
  );
  control.wakeSinks?.();
  return result;
}
