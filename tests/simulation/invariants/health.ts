import { learnFromAttempts } from '../../../src/control/lifecycle/attempt-health.ts';
import { HealthBook } from '../../../src/core/health/health-book.ts';
import type { SimProcess } from '../sim-process.ts';
import type { AuditContext } from './audit-context.ts';

const RECIPE = { image: 'host', isolation: 'container' } as const;

/** Everything that decisions read of the health of each backend. */
function healthOf({ control }: SimProcess, health: HealthBook): string {
  const now = control.clock.now();
  const standings = control.extensions.all().map(({ header }) => ({
    overall: health.overall(header, 'healthy', now),
    standing: health.standing(header, 'healthy', RECIPE, now),
    strained: health.isStrained(header.id, now),
  }));
  return JSON.stringify(standings);
}

/**
 * A process that started now would know of the backends what the running one knows. Two that share the database learn of
 * each other's attempts only when they start, so that this holds for one.
 */
export async function checkHealth(ctx: AuditContext, process: SimProcess): Promise<void> {
  const fresh = new HealthBook();
  await learnFromAttempts({ ...process.control, store: process.storedRows(), health: fresh });
  const [before, after] = [healthOf(process, process.control.health), healthOf(process, fresh)];
  if (before !== after) ctx.fail('restart-keeps-health', `${process.name}: ${before} before, ${after} after`);
}
