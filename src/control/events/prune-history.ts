import type { ControlPorts } from '../ports/control-ports.ts';

const BATCH = 500;
const KEEP_FIGURES_MS = 30 * 24 * 3_600_000;
const KEEP_AUDIT_MS = 365 * 24 * 3_600_000;

/**
 * Removes records older than their retention times, and only events that every sink has received. Records of money are never
 * removed. Returns the number of removed rows.
 */
export async function pruneHistory(deps: ControlPorts): Promise<number> {
  const { keepDestroyedMs, keepEventsMs, keepIdempotencyMs, keepAuditMs = KEEP_AUDIT_MS } = deps.settings;
  const { keepHostFiguresMs = KEEP_FIGURES_MS } = deps.settings;
  let total = 0;
  for (;;) {
    const pruned = await deps.store.transaction('prune', async (tx) => {
      const now = deps.clock.now();
      const delivered = (await tx.outbox.minCursor()) ?? (await tx.events.lastSeq());
      const sandboxes = await tx.sandboxes.prune(now - keepDestroyedMs, delivered, BATCH);
      const events = await tx.events.prune(now - keepEventsMs, delivered, BATCH);
      const keys = await tx.idempotency.prune(now - keepIdempotencyMs, BATCH);
      const snapshots = await tx.snapshots.prune(now - keepDestroyedMs, BATCH);
      const dead = await tx.outbox.pruneDead(now - keepEventsMs, BATCH);
      const audit = await tx.audit.prune(now - keepAuditMs, BATCH);
      const quotes = await tx.quotes.prune(now - keepIdempotencyMs, BATCH);
      const figures = await tx.hosts.pruneSamples(now - keepHostFiguresMs, BATCH);
      return [sandboxes, events, keys, snapshots, dead, audit, quotes, figures];
    });
    total += pruned.reduce((sum, count) => sum + count, 0);
    if (pruned.every((count) => count < BATCH)) return total;
  }
}
