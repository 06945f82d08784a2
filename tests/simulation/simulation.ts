import type { EventSink } from '../../src/control/events/deliver-events.ts';
import { memoryDatabase } from '../../src/store/memory/memory-database.ts';
import { Auditor } from './auditor.ts';
import { Client } from './client.ts';
import { Coverage } from './coverage.ts';
import { CrashPlan } from './crash-plan.ts';
import type { Desk } from './desk.ts';
import type { AuditContext } from './invariants/audit-context.ts';
import { checkHealth } from './invariants/health.ts';
import { Mirror } from './mirror.ts';
import { grant, limit } from './operations.ts';
import { Prng } from './prng.ts';
import { RecordingTx } from './recording-tx.ts';
import type { Scenario } from './scenario.ts';
import { scenarioFor } from './scenario.ts';
import type { Owner, Suspension } from './scheduler.ts';
import { drained, Scheduler } from './scheduler.ts';
import { SimNetwork } from './sim-network.ts';
import { SimProcess } from './sim-process.ts';
import { simSink, sinkPlans } from './sim-sink.ts';
import { unrestIn } from './unrest.ts';
import type { Violation } from './violation.ts';
import { Verdict } from './violation.ts';

export interface SeedResult {
  readonly seed: number;
  readonly violation: Violation | null;
  readonly operations: number;
  readonly steps: number;
  readonly commits: number;
  readonly crashes: number;
  readonly virtualMs: number;
  readonly digest: string;
  readonly cells: ReadonlyMap<string, number>;
}

const EPOCH = 1_750_000_000_000;
/** Scenarios that forget destroyed sandboxes sooner than a run takes. */
const FORGETS_WITHIN_MS = 3_600_000;
const MOST_STEPS = 250_000;
const MOST_STEPS_AT_ONCE = 20_000;

/** One seed from its start until everything has come to rest and every sandbox is gone. */
export class Simulation {
  readonly #scenario: Scenario;
  readonly #scheduler = new Scheduler(EPOCH);
  readonly #verdict = new Verdict();
  readonly #mirror = new Mirror();
  readonly #coverage = new Coverage();
  readonly #desk: Desk;
  readonly #context: AuditContext;
  readonly #client: Client;
  readonly #plan: CrashPlan;
  readonly #prng: Prng;
  readonly #processes: SimProcess[] = [];
  readonly #everyone: SimProcess[] = [];
  #born = 0;
  #crashes = 0;
  #steadySince: number | null = null;
  #jumpedAt = 0;
  #quiet = false;
  #lastTime = 0;
  #stepsAtOnce = 0;

  constructor(seed: number, trace: ((line: string) => void) | null = null) {
    const scenario = scenarioFor(seed);
    this.#scenario = scenario;
    this.#prng = new Prng(seed, 'events');
    const sinks = sinkPlans(scenario.sinks);
    const worlds = new Map();
    const context: AuditContext = {
      scenario,
      scheduler: this.#scheduler,
      mirror: this.#mirror,
      worlds,
      isAlive: (name) => this.#processes.some((process) => process.name === name && process.alive),
      steadySince: () => this.#steadySince,
      fail: (invariant, detail) => this.#verdict.fail(invariant, detail),
    };
    this.#context = context;
    const auditor = new Auditor(context, this.#coverage, sinks);
    const network = new SimNetwork(this.#scheduler, new Prng(seed, 'network'), auditor, scenario);
    for (const [id, world] of network.worlds) worlds.set(id, world);
    const database = memoryDatabase();
    this.#desk = {
      scenario,
      scheduler: this.#scheduler,
      database,
      recorder: new RecordingTx(database.tx, this.#mirror),
      auditor,
      network,
      prng: new Prng(seed, 'processes'),
    };
    this.#client = new Client(this.#desk, this.#mirror);
    this.#plan = new CrashPlan(new Prng(seed, 'crashes'), scenario.crashes, scenario.operations);
    if (trace) {
      const start = this.#scheduler.now;
      const line = (text: string) => trace(`${String(this.#scheduler.now - start).padStart(8)} ${text}`);
      this.#scheduler.trace = line;
      auditor.trace = line;
    }
  }

  async run(): Promise<SeedResult> {
    const { scenario } = this.#desk;
    for (let i = 0; i < scenario.replicas; i += 1) this.#spawn();
    await this.#busyPhase();
    if (this.#verdict.violation === null) await this.#quietPhase();
    const result = this.#result();
    this.#client.dispose();
    for (const process of this.#everyone) process.dispose();
    await drained();
    return result;
  }

  async #busyPhase(): Promise<void> {
    this.#schedulePump();
    this.#scheduleWeather();
    const { operations } = this.#scenario;
    // Until everything is asked for; what is under way then goes on in the quiet phase.
    while (this.#client.started < operations + 2) if (!(await this.#step())) return;
  }

  async #quietPhase(): Promise<void> {
    const { database, network } = this.#desk;
    this.#quiet = true;
    network.calm();
    if (!(await this.#stepUntil(90_000, () => this.#unrest()))) return;
    const balanceOf = (account: string) => database.tx.ledger.balance(account);
    await this.#desk.auditor.atRest(balanceOf);
    await this.#checkHealth();
    if (this.#verdict.violation !== null) return;
    const deadlines = [...this.#mirror.unfinished.values()].map(({ deadlineAt }) => deadlineAt);
    const last = Math.max(this.#scheduler.now, ...deadlines) - this.#scheduler.now;
    const unfinished = () => {
      const [first] = this.#mirror.unfinished.values();
      return first === undefined ? this.#unrest() : `${first.uid} is ${first.state}`;
    };
    if (!(await this.#stepUntil(last + 90_000, unfinished))) return;
    await this.#desk.auditor.atRest(balanceOf);
    for (const [account, balance] of this.#mirror.balances) {
      if (account.startsWith('liab:held:') && balance !== 0)
        this.#verdict.fail('ledger-balances', `${account} ends with ${balance}`);
    }
    for (const { uid, version } of this.#mirror.sandboxes.values()) {
      const stored = await database.tx.sandboxes.get(uid);
      if (stored?.version !== version)
        this.#verdict.fail('mirror-is-true', `${uid} is not what its commits add up to`);
    }
  }

  /** Steps until `pending` answers nothing; a violation when the time is up before. */
  async #stepUntil(withinMs: number, pending: () => string | null): Promise<boolean> {
    const until = this.#scheduler.now + withinMs;
    let lookAt = 0;
    for (;;) {
      if (this.#scheduler.now >= lookAt) {
        lookAt = this.#scheduler.now + 1_000;
        const what = pending();
        if (what === null) return true;
        if (this.#scheduler.now > until) {
          this.#verdict.fail('comes-to-rest', `after ${withinMs} ms of calm: ${what}`);
          return false;
        }
      }
      if (!(await this.#step())) return false;
    }
  }

  /** Rows that are forgotten cannot be learned again, and two processes learn apart. */
  async #checkHealth(): Promise<void> {
    const { replicas, settings } = this.#scenario;
    const [process] = this.#processes;
    if (replicas > 1 || process === undefined || settings.keepDestroyedMs < FORGETS_WITHIN_MS) return;
    await checkHealth(this.#context, process);
  }

  #unrest(): string | null {
    const { network, auditor } = this.#desk;
    if (this.#client.waiting > 0) return `${this.#client.waiting} requests wait`;
    return unrestIn(this.#mirror, network.worlds) ?? auditor.events.undelivered();
  }

  async #step(): Promise<boolean> {
    const scheduler = this.#scheduler;
    const entry = scheduler.take();
    if (entry === null) {
      this.#verdict.fail('comes-to-rest', 'nothing is left that could ever happen');
      return false;
    }
    this.#watchForSpin();
    const died = this.#isTempted(entry.what) && (await this.#crashAt(entry.what));
    if (!died) {
      entry.resume();
      await drained();
    }
    this.#noteSteadiness();
    this.#desk.auditor.look();
    return this.#verdict.violation === null;
  }

  #watchForSpin(): void {
    const { now, steps } = this.#scheduler;
    this.#stepsAtOnce = now === this.#lastTime ? this.#stepsAtOnce + 1 : 0;
    this.#lastTime = now;
    if (this.#stepsAtOnce > MOST_STEPS_AT_ONCE || steps > MOST_STEPS) {
      this.#verdict.fail('comes-to-rest', `it spins: ${steps} steps, ${this.#stepsAtOnce} at one moment`);
    }
  }

  #isTempted(what: Suspension): boolean {
    if (this.#quiet || what.victim?.alive !== true) return false;
    return this.#plan.isTempted(what, this.#client.started, this.#coverage);
  }

  /** Whether the resumption died with its process. */
  async #crashAt(what: Suspension): Promise<boolean> {
    const victim = what.victim as SimProcess;
    const kind = await this.#plan.decide(what, this.#coverage);
    if (kind === null) return false;
    const concerned = what.concerns === undefined ? [] : [...(await what.concerns())];
    await drained();
    const states = concerned.flatMap((uid) => {
      const state = this.#mirror.sandboxes.get(uid)?.state;
      return [[uid, state ?? 'new'] as const];
    });
    this.#desk.auditor.trace?.(`    ${kind} ${victim.name} at ${what.label} (${states.join(' ')})`);
    if (kind === 'stop') {
      this.#stop(victim);
      return false;
    }
    this.#coverage.crashed(what.label, states);
    this.#kill(victim);
    return what.owner === victim;
  }

  #kill(victim: SimProcess): void {
    if (!victim.alive) return;
    this.#crashes += 1;
    victim.kill();
    this.#client.lost(victim);
    this.#processes.splice(this.#processes.indexOf(victim), 1);
    const downMs = this.#prng.pick([5, 300, 5_000, 20_000]);
    this.#later('restart', downMs, () => this.#spawn());
  }

  #stop(victim: SimProcess): void {
    let over = false;
    const end = () => {
      if (over) return;
      over = true;
      this.#kill(victim);
    };
    victim.stop().then(end, end);
    this.#later('impatience', 5_000, end);
  }

  #spawn(): void {
    this.#born += 1;
    const sinksFor = (process: Owner): EventSink[] =>
      sinkPlans(this.#scenario.sinks).map((plan) => simSink(this.#desk, plan, process, () => this.#quiet));
    const process = new SimProcess(this.#desk, `process-${this.#born}`, sinksFor);
    this.#processes.push(process);
    this.#everyone.push(process);
    process.start();
  }

  #noteSteadiness(): void {
    let since: number | null = null;
    for (const { upSince } of this.#processes)
      if (upSince !== null) since = Math.min(since ?? upSince, upSince);
    this.#steadySince = since === null ? null : Math.max(since, this.#jumpedAt);
  }

  #later(label: string, ms: number, then: () => void): void {
    this.#scheduler.after(ms, { owner: null, victim: null, label }, then);
  }

  #schedulePump(): void {
    const pump = () => {
      const up = this.#processes.filter(({ upSince }) => upSince !== null);
      if (up.length > 0) {
        const process = this.#prng.pick(up);
        const { started } = this.#client;
        if (started === 0) this.#client.run(process, grant(this.#scenario.creditsMicroUsd, 'first'));
        else if (started === 1) this.#client.run(process, grant(1_000_000, 'first', 'w2'));
        else if (started === 2 && this.#scenario.budget)
          this.#client.run(process, limit(this.#scenario.budget));
        else this.#client.next(process);
      }
      if (this.#quiet) return;
      if (up.length === 0) {
        this.#later('client', 400, pump);
        return;
      }
      // Now and then several at the same moment.
      const gap = this.#prng.chance(0.25) ? 0 : -Math.log(1 - this.#prng.float()) * this.#scenario.paceMs;
      this.#later('client', Math.floor(gap), pump);
    };
    this.#later('client', 10, pump);
  }

  #scheduleWeather(): void {
    const { operations, paceMs, jumps, stormRate, backends } = this.#scenario;
    const spanMs = operations * paceMs * 0.75;
    for (let i = 0; i < jumps; i += 1) {
      this.#later('jump', this.#prng.between(0, spanMs), () => {
        if (this.#quiet) return;
        this.#scheduler.jump(this.#prng.pick([2_000, 15_000, 60_000]));
        this.#jumpedAt = this.#scheduler.now;
      });
    }
    for (let i = 0; i < 4; i += 1) {
      this.#later('vanish', this.#prng.between(0, spanMs), () => {
        if (!this.#quiet) this.#desk.network.vanish(this.#prng);
      });
    }
    for (let i = 0; stormRate > 0 && i < 3; i += 1) {
      const { id } = this.#prng.pick(backends);
      const ms = this.#prng.pick([1_000, 6_000, 20_000]);
      this.#later('storm', this.#prng.between(0, spanMs), () => {
        if (!this.#quiet) this.#desk.network.storm(id, ms);
      });
    }
  }

  #result(): SeedResult {
    const { steps, digest, now } = this.#scheduler;
    return {
      seed: this.#scenario.seed,
      violation: this.#verdict.violation,
      operations: this.#client.started,
      steps,
      commits: this.#mirror.transfers.size,
      crashes: this.#crashes,
      virtualMs: now - EPOCH,
      digest: (digest >>> 0).toString(16).padStart(8, '0'),
      cells: this.#coverage.cells,
    };
  }
}
