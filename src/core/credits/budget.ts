import type { Actor } from '../../contract/values/state.ts';

export type BudgetScope = 'workspace' | 'key' | 'profile' | 'actor' | 'run';
export type BudgetPeriod = 'day' | 'week' | 'month' | 'lifetime';

/** The most that may be spent under a scope in each window. It is hard: what is reserved counts as spent. */
export interface BudgetRecord {
  readonly id: string;
  readonly scope: BudgetScope;
  /** The key, profile, actor or run that the budget is for; `null` gives each of them this much of its own. */
  readonly value: string | null;
  /** The line of succession of a key, which is what is counted. Left out where the budget was made before keys had lines. */
  readonly line?: string;
  readonly period: BudgetPeriod;
  readonly limitMicroUsd: number;
  /** The seconds between two admissions from 80 % of the limit on. */
  readonly throttleSeconds: number | null;
  /**
   * Whether amounts that vendors bill to our customers themselves count, too. Left out where the budget was made before this
   * setting.
   */
  readonly ownKeys?: boolean;
  readonly createdAt: number;
}

/** The spender of a charge, by the fields that budgets tell spenders apart by. */
export interface Spender {
  readonly keyId: string | null;
  /** The lines of that key: its own, then those of the keys that made it. */
  readonly keyLines: readonly string[];
  /** The line that a budget of each key counts it under. */
  readonly budgetLine: string | null;
  readonly profileId: string;
  readonly actor: Actor;
  readonly runId: string | null;
}

export interface BudgetWindow {
  /** Names the window; the same for every moment in it. */
  readonly name: string;
  /** When the next window begins; `null` for a lifetime. */
  readonly resetsAt: number | null;
}

const DAY_MS = 86_400_000;

/** Windows are of UTC: days from midnight, weeks from Monday, months from the first. */
export function windowOf(period: BudgetPeriod, at: number): BudgetWindow {
  const midnight = Math.floor(at / DAY_MS) * DAY_MS;
  switch (period) {
    case 'day':
      return { name: isoDay(midnight), resetsAt: midnight + DAY_MS };
    case 'week': {
      // 1970-01-01 was a Thursday.
      const sinceMonday = ((midnight / DAY_MS + 3) % 7) * DAY_MS;
      return {
        name: `week-${isoDay(midnight - sinceMonday)}`,
        resetsAt: midnight - sinceMonday + 7 * DAY_MS,
      };
    }
    case 'month': {
      const day = new Date(at);
      const next = Date.UTC(day.getUTCFullYear(), day.getUTCMonth() + 1, 1);
      return { name: isoDay(midnight).slice(0, 7), resetsAt: next };
    }
    case 'lifetime':
      return { name: 'lifetime', resetsAt: null };
  }
}

function isoDay(at: number): string {
  return new Date(at).toISOString().slice(0, 10);
}

function keyName({ value, line }: BudgetRecord, { keyLines, budgetLine }: Spender): string | null {
  const counted = line ?? value;
  if (counted === null) return budgetLine;
  return keyLines.includes(counted) ? counted : null;
}

/** Returns the name of the spender under this budget's scope; `null` when the budget does not apply to the spender. */
export function spenderName(budget: BudgetRecord, spender: Spender): string | null {
  if (budget.scope === 'workspace') return 'all';
  if (budget.scope === 'key') return keyName(budget, spender);
  const named = { profile: spender.profileId, actor: spender.actor, run: spender.runId }[budget.scope];
  return budget.value === null || budget.value === named ? named : null;
}

/** The accounts of one budget for one spender in one window have this in their names. */
export function budgetMark(budget: BudgetRecord, name: string, at: number): string {
  return `${budget.id}:${windowOf(budget.period, at).name}:${name}`;
}

const ALERT_LEVELS = [80, 100] as const;
/** An alert level is raised again only after the use fell this far below it. */
const REARM_BELOW_PERCENT = 10;

/** Returns the alert level that still counts as raised at this use. */
export function rearm(told: number, usedMicroUsd: number, limitMicroUsd: number): number {
  const percent = percentOf(usedMicroUsd, limitMicroUsd);
  return ALERT_LEVELS.filter((level) => level <= told && percent >= level - REARM_BELOW_PERCENT).at(-1) ?? 0;
}

function percentOf(usedMicroUsd: number, limitMicroUsd: number): number {
  return limitMicroUsd === 0 ? 100 : (usedMicroUsd / limitMicroUsd) * 100;
}

/** Returns the highest alert level that counts as raised once `used` is reached, and the level to raise now, if any. */
export function alertAt(
  told: number,
  usedMicroUsd: number,
  limitMicroUsd: number,
): { readonly told: number; readonly tell: number | null } {
  const percent = percentOf(usedMicroUsd, limitMicroUsd);
  const reached = ALERT_LEVELS.filter((level) => percent >= level).at(-1) ?? 0;
  if (reached > told) return { told: reached, tell: reached };
  return { told: rearm(told, usedMicroUsd, limitMicroUsd), tell: null };
}
