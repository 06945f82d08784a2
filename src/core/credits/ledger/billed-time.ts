import type { EventRecord } from '../../events/event.ts';
import { isoTime } from '../../ports/clock.ts';
import type { Tx } from '../../ports/store/store.ts';
import type { MeterRecord } from '../meter.ts';
import { rebase } from '../meter.ts';
import { billedUntil } from './funding.ts';

const PAGE = 500;
/** Bills count by a clock that is never set, events by one that is: a stretch may differ by this much and this share. */
const SLACK_MS = 250;
const SLACK_SHARE = 0.001;

/** The events that move a sandbox from one state to another. */
const MOVES = ['ready', 'active', 'paused', 'expired', 'failed', 'destroying'].map(
  (state) => `sandbox.${state}`,
);

/** The billed time of a life by its events. Milliseconds. */
export interface TimeByEvents {
  /** The time in billed states: the upper bound of the billed time. */
  readonly ranMs: number;
  /** The part of it that is owed by the rules: the lower bound of the billed time. */
  readonly owedMs: number;
}

/**
 * Returns the time of one meter by its events, oldest first. Nothing is owed after `owedUntil`, nor for a stretch whose end its
 * backend chose: it may have stopped long before that was noticed. `null` when the events begin after it was ready.
 */
function timeByEvents(
  meter: Pick<MeterRecord, 'generation' | 'pausedRate'>,
  events: readonly EventRecord[],
  now: number,
  owedUntil: number,
): TimeByEvents | null {
  const moves = events.filter(({ generation }) => generation === meter.generation);
  if (moves[0]?.state !== 'ready') return null;
  const isBilled = ({ state }: EventRecord) =>
    state === 'ready' || state === 'active' || (state === 'paused' && meter.pausedRate > 0n);
  let ranMs = 0;
  let owedMs = 0;
  for (const [index, move] of moves.entries()) {
    if (!isBilled(move)) continue;
    const next = moves[index + 1];
    const end = next?.at ?? now;
    const isStoppedByBackend = next?.state === 'paused' && next.details.reason !== undefined;
    ranMs += Math.max(0, end - move.at);
    if (!isStoppedByBackend) owedMs += Math.max(0, Math.min(end, owedUntil) - move.at);
  }
  return { ranMs, owedMs };
}

async function movesOf(tx: Tx, sandboxUid: string): Promise<readonly EventRecord[]> {
  const moves: EventRecord[] = [];
  for (let after = 0; ; ) {
    const query = { workspaceId: null, sandboxUid, types: MOVES, after, limit: PAGE };
    const page = await tx.events.list(query);
    moves.push(...page);
    if (page.length < PAGE) return moves;
    after = page.at(-1)?.seq ?? after;
  }
}

type Find = (subject: string, detail: string) => void;

/** Compares the billed time of every meter of a sandbox with its events, where those are still kept. */
export async function checkBilledTime(tx: Tx, sandboxUid: string, now: number, find: Find): Promise<void> {
  const meters = (await tx.meters.forSandbox(sandboxUid)).filter(({ runningRate }) => runningRate > 0n);
  if (meters.length === 0) return;
  const moves = await movesOf(tx, sandboxUid);
  const sandbox = await tx.sandboxes.get(sandboxUid);
  for (const meter of meters) {
    const isCurrent = sandbox?.generation === meter.generation;
    const owedUntil = isCurrent ? billedUntil(meter, sandbox.deadlineAt, now) : 0;
    const time = timeByEvents(meter, moves, now, owedUntil);
    if (time === null) continue;
    const { billedMs } = meter.closedAt === null ? rebase(meter, now, meter.rate, owedUntil) : meter;
    const slackMs = SLACK_MS + moves.length + time.ranMs * SLACK_SHARE;
    const counted = `${billedMs} ms are billed since ${isoTime(meter.openedAt)}, by its events`;
    if (billedMs > time.ranMs + slackMs) find(meter.id, `${counted} it ran for ${time.ranMs} ms.`);
    if (billedMs < time.owedMs - slackMs) find(meter.id, `${counted} ${time.owedMs} ms are owed.`);
  }
}
