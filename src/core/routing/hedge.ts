import type { RouteCandidate, RouteHedge } from '../../contract/routing/route.ts';
import { dollars } from '../credits/dollars.ts';
import { mostMicroUsd } from '../credits/meter.ts';
import { termsOf } from '../credits/terms.ts';
import type { Recipe } from '../recipe/recipe.ts';
import { valueOfSecond } from './route-score.ts';

interface Backup {
  readonly candidate: RouteCandidate;
  readonly host: string | null;
}

/** The place that is next in the plan after the first. */
function backupOf([first, second]: readonly RouteCandidate[]): Backup | null {
  const otherHost = first?.other_hosts?.[0];
  if (first && otherHost !== undefined) return { candidate: first, host: otherHost };
  return second ? { candidate: second, host: second.host } : null;
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}

/**
 * Decides whether a second attempt is worth starting once the first is later than nearly all before it: the wait that is then
 * left must be longer than a start elsewhere takes, and the difference worth more than the attempt that is thrown away.
 * `undefined` where the route does not ask for it.
 */
export function planHedge(
  recipe: Pick<Recipe, 'route' | 'volumes' | 'mounts' | 'setupRun'>,
  ranked: readonly RouteCandidate[],
): RouteHedge | undefined {
  const { route } = recipe;
  const [first] = ranked;
  if (route.hedge !== 'auto' || !first) return undefined;
  const backup = backupOf(ranked);
  const none = { saves_ms: 0, worth_micro_usd: 0, cost_micro_usd: 0, after_ms: null };
  const place = { extension: backup?.candidate.extension ?? null, host: backup?.host ?? null };
  if (!backup) return { ...place, ...none, reason: 'There is no second backend to start it on.' };
  if ((recipe.volumes?.length ?? 0) > 0 || recipe.mounts.length > 0)
    return { ...place, ...none, reason: 'What it mounts cannot be in two places at once.' };
  if (first.provider_key || backup.candidate.provider_key)
    return {
      ...place,
      ...none,
      reason: 'On a key of your own, its vendor would bill you for both attempts.',
    };
  const wanted = route.hedge_after === undefined ? null : Math.round(route.hedge_after * 1000);
  if (wanted === null && recipe.setupRun.length > 0)
    return {
      ...place,
      ...none,
      reason: 'How long its setup commands take is not measured: say hedge_after.',
    };
  const afterMs = wanted ?? first.standing?.p95_ms;
  if (afterMs === undefined)
    return { ...place, ...none, reason: `How long ${first.extension} takes was not measured often enough.` };
  const startMs = backup.candidate.standing?.p50_ms ?? backup.candidate.standing?.wait_ms ?? 0;
  // A caller that sets `hedge_after` has waited that long: about as much again is at stake.
  const savesMs = wanted ?? (first.standing?.tail_ms ?? 0) - startMs;
  const cost = Math.max(
    mostMicroUsd(termsOf(first.quote), afterMs + startMs),
    mostMicroUsd(termsOf(backup.candidate.quote), startMs),
  );
  const worth = Math.max(0, Math.floor((valueOfSecond(route) * savesMs) / 1000));
  const terms = { saves_ms: Math.max(0, savesMs), worth_micro_usd: worth, cost_micro_usd: cost };
  const no = (reason: string): RouteHedge => ({ ...place, ...terms, after_ms: null, reason });
  if (savesMs <= 0)
    return no(
      `A create that waits past ${seconds(afterMs)} waits no longer than a start on ${place.extension} takes.`,
    );
  if (worth < cost)
    return no(
      `The waiting saved is worth ${dollars(worth)}, the attempt thrown away costs ${dollars(cost)}.`,
    );
  const reason = `A second attempt starts on ${place.extension} after ${seconds(afterMs)}.`;
  return { ...place, ...terms, after_ms: afterMs, reason };
}
