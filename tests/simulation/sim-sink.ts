import type { EventSink } from '../../src/control/events/deliver-events.ts';
import type { EventRecord } from '../../src/core/events/event.ts';
import type { Desk } from './desk.ts';
import type { Owner } from './scheduler.ts';

export interface SinkPlan {
  readonly id: string;
  readonly maxTries: number | null;
  accepts(event: EventRecord): boolean;
}

const SINKS: readonly SinkPlan[] = [
  { id: 'hub', maxTries: null, accepts: () => true },
  { id: 'hook', maxTries: 3, accepts: (event) => event.type.startsWith('sandbox.') },
];

const REFUSAL = new Error('The sink says no.');

export function sinkPlans(count: number): readonly SinkPlan[] {
  return SINKS.slice(0, count);
}

/** Somebody at the other end of a network: slow, refusing, or taking an event and failing to say so. */
export function simSink(desk: Desk, plan: SinkPlan, process: Owner, isQuiet: () => boolean): EventSink {
  const { scheduler, prng, auditor, scenario } = desk;
  const deliver = (event: EventRecord): Promise<void> => {
    const fails = !isQuiet() && prng.chance(scenario.sinkFailureRate);
    // Half of them are too fast for anything to happen meanwhile.
    if (!fails && prng.chance(0.5)) {
      auditor.delivered(plan.id, event);
      return Promise.resolve();
    }
    return new Promise((resolve, reject) => {
      const concerned = new Set(event.sandboxUid === null ? [] : [event.sandboxUid]);
      const concerns = () => concerned;
      const takes = !fails || prng.chance(0.5);
      const slow = !isQuiet() && prng.chance(0.02) ? 3_000 : prng.between(0, 2);
      scheduler.after(slow, { owner: null, victim: process, label: 'deliver:sent', concerns }, () => {
        if (takes) auditor.delivered(plan.id, event);
        const what = { owner: process, victim: process, label: 'deliver:taken', concerns };
        scheduler.after(1, what, () => (fails ? reject(REFUSAL) : resolve()));
      });
    });
  };
  return { id: plan.id, maxTries: plan.maxTries, accepts: plan.accepts, deliver };
}
