import type { StampLabels, StubObjectState, StubObjectView } from '../wire/protocol.ts';

/** One sandbox at the stub. Times are of the stub's true clock; `skewMs` is the deviation of its own clock. */
export interface WorldObject {
  readonly name: string;
  readonly labels: StampLabels;
  readonly createdAt: number;
  state: Exclude<StubObjectState, 'volume_left'>;
  /** When it may begin to run; `null`: never. */
  runsAt: number | null;
  /** When a delete under way ends; `null`: not before the next delete. */
  goneAt: number | null;
  endsAt: number;
  skewMs: number;
  vanishesAt: number | null;
  /** Whether it has vanished: no request sees it, whatever is still being removed. */
  hidden: boolean;
  billedMs: number;
  billedSince: number | null;
  /** Whether the machine of the object (a directory, processes) has followed. */
  bodyReady: boolean;
  bodyGone: boolean;
  webhookTwice: boolean;
  /** Number of further deletes that its volume needs once the object is gone. */
  volumeDeletes: number;
}

export interface WorldSnapshot {
  readonly id: string;
  readonly owner: string;
  readonly source: string;
  readonly title: string | null;
  readonly takenAt: number;
}

/** A volume that its object left behind. */
export interface LeftVolume {
  readonly name: string;
  readonly labels: StampLabels;
  readonly createdAt: number;
  readonly billedMs: number;
  deletesLeft: number;
}

export function startBilling(object: WorldObject, at: number): void {
  object.billedSince ??= at;
}

export function stopBilling(object: WorldObject, at: number): void {
  if (object.billedSince === null) return;
  object.billedMs += Math.max(0, at - object.billedSince);
  object.billedSince = null;
}

export function billedMs(object: WorldObject, at: number): number {
  const open = object.billedSince === null ? 0 : Math.max(0, at - object.billedSince);
  return object.billedMs + open;
}

/** Returns when the stub ends it, in true time: its own clock may deviate. */
export function deadlineOf(object: WorldObject): number {
  return object.endsAt - object.skewMs;
}

/** Returns the next moment at which time alone changes it. */
export function nextChangeAt(object: WorldObject): number {
  let next = Number.POSITIVE_INFINITY;
  if (object.state === 'deleting') {
    return object.bodyGone && object.goneAt !== null ? object.goneAt : next;
  }
  if (object.state === 'creating' && object.bodyReady && object.runsAt !== null) next = object.runsAt;
  if (object.vanishesAt !== null) next = Math.min(next, object.vanishesAt);
  return Math.min(next, deadlineOf(object));
}

export function viewOf(object: WorldObject, at: number): StubObjectView {
  return {
    name: object.name,
    labels: object.labels,
    state: object.state,
    created_at: object.createdAt + object.skewMs,
    ends_at: object.endsAt,
    billed_ms: billedMs(object, at),
  };
}

export function viewOfVolume(volume: LeftVolume): StubObjectView {
  return {
    name: volume.name,
    labels: volume.labels,
    state: 'volume_left',
    created_at: volume.createdAt,
    ends_at: volume.createdAt,
    billed_ms: volume.billedMs,
  };
}
