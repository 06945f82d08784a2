import type { MeterRecord } from '../../core/credits/meter.ts';
import { isEstablished } from '../../core/lifecycle/lifecycle.ts';
import type { Extension, Handle, UsedSoFar } from '../../core/ports/extension.ts';
import type { Tx } from '../../core/ports/store/store.ts';
import { contextOf } from '../backends/backend-context.ts';
import { within } from '../backends/within.ts';
import type { ControlPorts } from '../ports/control-ports.ts';
import { learnUse } from './learn-use.ts';

const BATCH = 100;

/** Figures only grow: a backend that was restarted, and counts anew, takes nothing back. */
function withUse(meter: MeterRecord, { cpuMs, peakMemoryMb }: UsedSoFar): MeterRecord | null {
  const grown = (known: number | null, seen: number | undefined) =>
    seen === undefined ? known : Math.max(known ?? 0, Math.round(seen));
  const next = {
    ...meter,
    cpuMs: grown(meter.cpuMs, cpuMs),
    peakMemoryMb: grown(meter.peakMemoryMb, peakMemoryMb),
  };
  return next.cpuMs === meter.cpuMs && next.peakMemoryMb === meter.peakMemoryMb ? null : next;
}

/** Stores the use of one life with its meter, and learns from it when the life is over. */
export async function noteUse(tx: Tx, deps: ControlPorts, meterId: string, used: UsedSoFar): Promise<void> {
  const meter = await tx.meters.get(meterId);
  const next = meter && withUse(meter, used);
  if (!next) return;
  await tx.meters.update(next);
  learnUse(deps, next);
}

async function measured(
  deps: ControlPorts,
  extension: Extension,
  meter: MeterRecord,
  signal: AbortSignal,
): Promise<UsedSoFar | null> {
  const sandbox = await deps.store.read('measure', (tx) => tx.sandboxes.get(meter.sandboxUid));
  if (!sandbox?.handle || !isEstablished(sandbox.state)) return null;
  try {
    return await within(deps, deps.settings.operationTimeoutMs, signal, async (given) =>
      (extension.measure as NonNullable<Extension['measure']>)(
        sandbox.handle as Handle,
        await contextOf(deps, sandbox, given),
      ),
    );
  } catch (error) {
    signal.throwIfAborted();
    deps.log.debug({ err: error, sandbox: sandbox.uid }, 'a backend did not tell what was used');
    return null;
  }
}

/** Asks the backends for the use of living sandboxes so far, so that little is lost with a machine. */
export async function measureUse(deps: ControlPorts, signal: AbortSignal): Promise<void> {
  if (!deps.extensions.all().some(({ measure }) => measure !== undefined)) return;
  for (let after: string | null = null; ; ) {
    const page: readonly MeterRecord[] = await deps.store.read('measure', (tx) =>
      tx.meters.open(after, BATCH),
    );
    const seen: [string, UsedSoFar][] = [];
    for (const meter of page) {
      const extension = deps.extensions.get(meter.extensionId);
      const used = extension?.measure ? await measured(deps, extension, meter, signal) : null;
      if (used && withUse(meter, used)) seen.push([meter.id, used]);
    }
    if (seen.length > 0)
      await deps.store.transaction('measured', async (tx) => {
        for (const [meterId, used] of seen) await noteUse(tx, deps, meterId, used);
      });
    if (page.length < BATCH) return;
    after = page.at(-1)?.id ?? null;
  }
}
