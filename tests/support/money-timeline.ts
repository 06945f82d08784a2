/** One control plane over one calm backend, on a clock that only a test moves, with every promise of the simulation watched. */
import type { Control } from '../../src/control/control.ts';
import { DEFAULT_SETTINGS } from '../../src/control/ports/settings.ts';
import type { Caller } from '../../src/core/tenancy/caller.ts';
import { memoryDatabase } from '../../src/store/memory/memory-database.ts';
import { Auditor } from '../simulation/auditor.ts';
import { Coverage } from '../simulation/coverage.ts';
import type { Desk } from '../simulation/desk.ts';
import type { AuditContext } from '../simulation/invariants/audit-context.ts';
import { Mirror } from '../simulation/mirror.ts';
import { Prng } from '../simulation/prng.ts';
import { RecordingTx } from '../simulation/recording-tx.ts';
import type { Scenario } from '../simulation/scenario.ts';
import { scenarioFor } from '../simulation/scenario.ts';
import { drained, Scheduler } from '../simulation/scheduler.ts';
import { SimNetwork } from '../simulation/sim-network.ts';
import { SimProcess } from '../simulation/sim-process.ts';
import { Verdict } from '../simulation/violation.ts';

const EPOCH = 1_750_000_000_000;
const CREATE_MS = 800;

export const TIMELINE_CALLER: Caller = {
  actor: 'adm',
  workspaceId: 'w1',
  orgId: 'o1',
  keyId: 'key-1',
  scopes: new Set(['read', 'sandboxes', 'credits', 'server']),
  local: false,
};

export class MoneyTimeline {
  readonly mirror = new Mirror();
  readonly #scheduler = new Scheduler(EPOCH);
  readonly #verdict = new Verdict();
  readonly #desk: Desk;
  #process: SimProcess | null = null;
  #born = 0;

  /** `backend`: one of the simulation's, by the end of its name; each has a price of its own. */
  constructor(seed: number, backend: '' | '#b' | '#c') {
    const drawn = scenarioFor(seed);
    const id = `ext.saas-stub${backend}`;
    const backends = [{ id, createMs: CREATE_MS, deleteMs: 20, capacity: null }];
    const { keepDestroyedMs, keepEventsMs } = DEFAULT_SETTINGS;
    const settings = { ...drawn.settings, waitMs: 30_000, maxLiving: null, keepDestroyedMs, keepEventsMs };
    const scenario: Scenario = {
      ...drawn,
      backends,
      settings,
      replicas: 1,
      priceChangeMs: 1_000_000_000_000,
    };
    const worlds = new Map();
    const context: AuditContext = {
      scenario,
      scheduler: this.#scheduler,
      mirror: this.mirror,
      worlds,
      isAlive: (name) => this.#process?.name === name,
      steadySince: () => null,
      fail: (invariant, detail) => this.#verdict.fail(invariant, detail),
    };
    const auditor = new Auditor(context, new Coverage(), []);
    const network = new SimNetwork(this.#scheduler, new Prng(seed, 'network'), auditor, scenario);
    for (const [name, world] of network.worlds) worlds.set(name, world);
    network.calm();
    const database = memoryDatabase();
    const recorder = new RecordingTx(database.tx, this.mirror);
    const prng = new Prng(seed, 'processes');
    this.#desk = { scenario, scheduler: this.#scheduler, database, recorder, auditor, network, prng };
  }

  get now(): number {
    return this.#scheduler.now;
  }

  get process(): SimProcess {
    if (this.#process === null) throw new Error('The process is dead.');
    return this.#process;
  }

  /** What was promised and not held; `null` when all is well. */
  get violation(): string | null {
    const { violation } = this.#verdict;
    return violation && `${violation.invariant}: ${violation.message}`;
  }

  /** A process that answers requests, and none of whose workers has looked at anything yet. */
  spawn(): SimProcess {
    this.#born += 1;
    this.#process = new SimProcess(this.#desk, `process-${this.#born}`, () => []);
    return this.#process;
  }

  async start(process = this.spawn()): Promise<void> {
    process.start();
    await drained();
    while (process.upSince === null) await this.#step();
  }

  /** As kill -9 does. */
  kill(): void {
    this.#process?.kill();
    this.#process = null;
  }

  /** Steps until this is answered. */
  async ask<T>(request: (control: Control) => Promise<T>): Promise<T> {
    const answer = request(this.process.control);
    let isOver = false;
    const end = () => {
      isOver = true;
    };
    answer.then(end, end);
    await drained();
    while (!isOver) await this.#step();
    return answer;
  }

  async pass(ms: number): Promise<void> {
    let isOver = false;
    this.#scheduler.after(ms, { owner: null, victim: null, label: 'time' }, () => {
      isOver = true;
    });
    while (!isOver) await this.#step();
  }

  async dispose(): Promise<void> {
    this.#process?.dispose();
    await drained();
  }

  async #step(): Promise<void> {
    const entry = this.#scheduler.take();
    if (entry === null) throw new Error('Nothing is left that could ever happen.');
    entry.resume();
    await drained();
  }
}
