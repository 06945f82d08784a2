import type { EventRecord } from '../../../src/core/events/event.ts';
import type { SinkPlan } from '../sim-sink.ts';
import type { AppliedCommit, AuditContext } from './audit-context.ts';

interface SubjectLog {
  lastSubjectSeq: number;
  readonly events: EventRecord[];
}

/** Every event of every subject reaches every sink, first times in order. */
export class EventInvariants {
  readonly #ctx: AuditContext;
  readonly #sinks: readonly SinkPlan[];
  readonly #subjects = new Map<string, SubjectLog>();
  /** `sink subject` → how many of the subject's events it has taken. */
  readonly #taken = new Map<string, Set<number>>();
  #lastSeq = 0;

  constructor(ctx: AuditContext, sinks: readonly SinkPlan[]) {
    this.#ctx = ctx;
    this.#sinks = sinks;
  }

  onCommit(commit: AppliedCommit): void {
    for (const write of commit.writes) {
      if (write.table === 'event') this.#append(write.row);
      if (write.table === 'forgotten') this.#checkForgotten(write.keptEvents);
    }
  }

  delivered(sinkId: string, event: EventRecord): void {
    const log = this.#subjects.get(event.subject);
    if (log === undefined) {
      this.#ctx.fail(
        'events-durable-first',
        `${sinkId} got ${event.type} of ${event.subject}, which is not committed`,
      );
      return;
    }
    const taken = this.#takenBy(sinkId, event.subject);
    if (taken.has(event.seq)) return;
    const sink = this.#sinks.find(({ id }) => id === sinkId) as SinkPlan;
    for (const earlier of log.events) {
      if (earlier.seq >= event.seq) break;
      if (taken.has(earlier.seq) || !sink.accepts(earlier) || this.#isDead(sinkId, earlier.seq)) continue;
      this.#ctx.fail(
        'events-in-order',
        `${sinkId} got ${event.subject} ${event.subjectSeq} before ${earlier.subjectSeq}`,
      );
    }
    taken.add(event.seq);
  }

  /** The subjects with events that a sink has not taken. */
  undelivered(): string | null {
    for (const sink of this.#sinks) {
      for (const [subject, { events }] of this.#subjects) {
        const taken = this.#takenBy(sink.id, subject);
        for (const event of events) {
          if (!sink.accepts(event) || taken.has(event.seq) || this.#isDead(sink.id, event.seq)) continue;
          return `${sink.id} never got ${event.type}, number ${event.subjectSeq} of ${subject}`;
        }
      }
    }
    return null;
  }

  #append(event: EventRecord): void {
    if (event.seq <= this.#lastSeq)
      this.#ctx.fail('events-in-order', `event ${event.seq} follows ${this.#lastSeq}`);
    this.#lastSeq = event.seq;
    const log = this.#subjects.get(event.subject) ?? { lastSubjectSeq: 0, events: [] };
    this.#subjects.set(event.subject, log);
    if (event.subjectSeq !== log.lastSubjectSeq + 1) {
      this.#ctx.fail('events-gapless', `${event.subject}: ${event.subjectSeq} follows ${log.lastSubjectSeq}`);
    }
    log.lastSubjectSeq = event.subjectSeq;
    log.events.push(event);
  }

  #checkForgotten(kept: ReadonlySet<number>): void {
    for (const sink of this.#sinks) {
      for (const [subject, { events }] of this.#subjects) {
        const taken = this.#takenBy(sink.id, subject);
        for (const event of events) {
          if (kept.has(event.seq) || taken.has(event.seq) || !sink.accepts(event)) continue;
          if (this.#isDead(sink.id, event.seq)) continue;
          this.#ctx.fail(
            'events-kept-until-taken',
            `${event.type} ${event.seq} is forgotten, ${sink.id} never got it`,
          );
        }
      }
    }
  }

  #isDead(sinkId: string, seq: number): boolean {
    return this.#ctx.mirror.parked.get(`${sinkId}\n${seq}`)?.dead === true;
  }

  #takenBy(sinkId: string, subject: string): Set<number> {
    const key = `${sinkId} ${subject}`;
    let taken = this.#taken.get(key);
    if (taken === undefined) {
      taken = new Set();
      this.#taken.set(key, taken);
    }
    return taken;
  }
}
