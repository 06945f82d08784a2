import { hashText } from './prng.ts';

/** Whoever a resumption belongs to: when it is dead, the resumption never happens. */
export interface Owner {
  readonly name: string;
  readonly alive: boolean;
}

/** What a suspension is about, for crash points and coverage. */
export interface Suspension {
  readonly owner: Owner | null;
  /** Who can be made to crash here; a message outlives its sender. */
  readonly victim: Owner | null;
  /** `tx:create:before`, `backend:create:sent`, `sleep` … */
  readonly label: string;
  /** The sandboxes it concerns, found out only when somebody asks. */
  concerns?(): Promise<ReadonlySet<string>> | ReadonlySet<string>;
}

interface Entry {
  readonly due: number;
  readonly order: number;
  readonly what: Suspension;
  readonly resume: () => void;
  cancelled: boolean;
}

export type Cancel = () => void;

/**
 * Virtual time and the queue of everything that waits. One resumption at a time: after each, all code that can run
 * without waiting for another one has run.
 */
export class Scheduler {
  now: number;
  steps = 0;
  /** A hash over every step so far: two runs of one seed have the same. */
  digest = 0;
  readonly #heap: Entry[] = [];
  #order = 0;
  trace: ((line: string) => void) | null = null;

  constructor(startAt: number) {
    this.now = startAt;
  }

  /** Runs `resume` after `delayMs`. */
  after(delayMs: number, what: Suspension, resume: () => void): Cancel {
    this.#order += 1;
    const entry: Entry = {
      due: this.now + Math.max(0, delayMs),
      order: this.#order,
      what,
      resume,
      cancelled: false,
    };
    this.#push(entry);
    return () => {
      entry.cancelled = true;
    };
  }

  /** Time passes without anybody noticing: everything that was due meanwhile is overdue. */
  jump(ms: number): void {
    this.now += ms;
  }

  /** When the next resumption is due; `null` when nothing waits. */
  nextDue(): number | null {
    this.#dropDead();
    return this.#heap[0]?.due ?? null;
  }

  /** Takes the next resumption out; `null` when nothing waits. */
  take(): { readonly what: Suspension; resume(): void } | null {
    this.#dropDead();
    const entry = this.#pop();
    if (entry === undefined) return null;
    if (entry.due > this.now) this.now = entry.due;
    this.steps += 1;
    const { what } = entry;
    this.digest = hashText(what.label, (this.digest ^ Math.imul(this.now | 0, 0x9e3779b1)) | 0);
    this.trace?.(`${what.owner?.name ?? 'net'} ${what.label}`);
    return entry;
  }

  #dropDead(): void {
    for (let top = this.#heap[0]; top !== undefined; top = this.#heap[0]) {
      if (!top.cancelled && (top.what.owner === null || top.what.owner.alive)) return;
      this.#pop();
    }
  }

  #push(entry: Entry): void {
    const heap = this.#heap;
    let at = heap.length;
    heap.push(entry);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!isBefore(entry, heap[parent] as Entry)) break;
      heap[at] = heap[parent] as Entry;
      at = parent;
    }
    heap[at] = entry;
  }

  #pop(): Entry | undefined {
    const heap = this.#heap;
    const top = heap[0];
    const last = heap.pop();
    if (top === undefined || last === undefined || heap.length === 0) return top;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isBefore(heap[child + 1] as Entry, heap[child] as Entry)) child += 1;
      if (!isBefore(heap[child] as Entry, last)) break;
      heap[at] = heap[child] as Entry;
      at = child;
    }
    heap[at] = last;
    return top;
  }
}

function isBefore(a: Entry, b: Entry): boolean {
  return a.due === b.due ? a.order < b.order : a.due < b.due;
}

/**
 * Resolves when no promise continuation is left to run: Node empties the whole microtask queue before it turns to a
 * tick that was asked for from within it.
 */
export function drained(): Promise<void> {
  return new Promise((resolve) => process.nextTick(resolve));
}
