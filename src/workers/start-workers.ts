import type { Control } from '../control/control.ts';
import type { EventSink } from '../control/events/deliver-events.ts';
import { releaseDeadLeases } from '../control/lifecycle/resume-work.ts';
import type { ControlPorts } from '../control/ports/control-ports.ts';
import { deliveryWorker } from './delivery-worker.ts';
import { lifecycleWorker } from './lifecycle-worker.ts';
import { fundingWorker, meterWorker } from './meter-worker.ts';
import { pruneWorker } from './prune-worker.ts';
import { reconcileWorker, snapshotWorker } from './reconcile-worker.ts';
import { uploadWorker } from './upload-worker.ts';

/** Stored times lie seconds ahead: looking this long after a commit is soon enough, and once for many commits. */
const NOTICE_MS = 200;
/** A meter that is due for funding waits this long: until then its backend has not confirmed how long it lives. */
const FUND_NOTICE_MS = 20;

export interface Workers {
  wakeSinks(): void;
  stop(): Promise<void>;
}

/** Puts every sink that has no cursor yet at the start of the log. */
async function beginSinks(deps: ControlPorts, sinks: readonly EventSink[]): Promise<void> {
  await deps.store.transaction('begin-sinks', async (tx) => {
    for (const { id: sinkId } of sinks) {
      if ((await tx.outbox.cursor(sinkId)) === null) await tx.outbox.setCursor({ sinkId, cursor: 0 });
    }
  });
}

/** Recovers what a dead process left, then keeps everything going until stopped. */
export async function startWorkers(control: Control, sinks: readonly EventSink[]): Promise<Workers> {
  await releaseDeadLeases(control);
  if (sinks.length > 0) await beginSinks(control, sinks);
  const lifecycle = lifecycleWorker(control);
  const funding = fundingWorker(control);
  const deliveries = sinks.map((sink) => deliveryWorker(control, sink));
  const reconciles = control.extensions.all().map((extension) => reconcileWorker(control, extension));
  const loops = [
    lifecycle,
    meterWorker(control),
    funding,
    pruneWorker(control),
    snapshotWorker(control),
    uploadWorker(control),
    ...deliveries,
    ...reconciles,
  ];
  const unsubscribe = control.store.onCommit((notice) => {
    if (notice.sandboxUids.size > 0) lifecycle.wakeBy(control.clock.now() + NOTICE_MS);
    if (notice.fundAt !== null) funding.wakeBy(Math.max(notice.fundAt, control.clock.now() + FUND_NOTICE_MS));
    if (notice.lastSeq > 0) for (const delivery of deliveries) delivery.wakeBy();
  });
  for (const loop of loops) loop.start();
  return {
    wakeSinks() {
      for (const delivery of deliveries) delivery.wakeBy();
    },
    async stop() {
      unsubscribe();
      await Promise.all(loops.map((loop) => loop.stop()));
    },
  };
}
