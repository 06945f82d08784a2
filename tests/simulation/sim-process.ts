import { SandboxerError } from '../../src/contract/errors/errors.ts';
import type { ExtensionHealth } from '../../src/contract/extensions/extension.ts';
import { Sessions } from '../../src/control/backends/sessions.ts';
import type { Control } from '../../src/control/control.ts';
import type { EventSink } from '../../src/control/events/deliver-events.ts';
import { Activity } from '../../src/control/lifecycle/activity.ts';
import { learnFromAttempts } from '../../src/control/lifecycle/attempt-health.ts';
import { Driver } from '../../src/control/lifecycle/driver.ts';
import type { ControlPorts } from '../../src/control/ports/control-ports.ts';
import { ledger } from '../../src/core/credits/ledger/ledger.ts';
import { HealthBook } from '../../src/core/health/health-book.ts';
import type { Clock } from '../../src/core/ports/clock.ts';
import type { Extension } from '../../src/core/ports/extension.ts';
import type { Log } from '../../src/core/ports/log.ts';
import type { Store } from '../../src/core/ports/store/store.ts';
import { UseBook } from '../../src/core/routing/learned-use.ts';
import { createSaasStubExtension } from '../../src/extensions/saas-stub/create.ts';
import type { Workers } from '../../src/workers/start-workers.ts';
import { startWorkers } from '../../src/workers/start-workers.ts';
import { catalogue, priceOf } from './catalogue.ts';
import type { Desk } from './desk.ts';
import { Prng } from './prng.ts';
import type { Owner, Scheduler } from './scheduler.ts';
import type { RequestInfo } from './sim-store.ts';
import { SimStore } from './sim-store.ts';

export const OWNER = 'simulation';

const HEALTH: ExtensionHealth = { status: 'healthy', detail: '', checked_at: null, checks: [] };

/** One control-plane process: the real use-cases, driver and workers on simulated ports. It can die at any suspension. */
export class SimProcess implements Owner {
  readonly name: string;
  alive = true;
  /** From when on it serves requests; `null` while it starts. */
  upSince: number | null = null;
  readonly control: Control;
  readonly #desk: Desk;
  readonly #store: SimStore;
  readonly #sinks: readonly EventSink[];
  #workers: Workers | null = null;
  #stopping = false;

  constructor(desk: Desk, name: string, sinksFor: (process: Owner) => readonly EventSink[]) {
    this.name = name;
    this.#desk = desk;
    this.#store = new SimStore(desk, this, desk.scenario.replicas === 1);
    const ports = this.#portsOf();
    this.control = {
      ...ports,
      driver: new Driver(ports),
      activity: new Activity(ports),
      sessions: new Sessions(ports),
    };
    this.#sinks = sinksFor(this);
  }

  start(): void {
    learnFromAttempts(this.control)
      .then(() => startWorkers(this.control, this.#sinks))
      .then(
        (workers) => {
          this.#workers = workers;
          this.upSince = this.#desk.scheduler.now;
        },
        (error: unknown) => this.#desk.auditor.defect('a process did not start', error),
      );
  }

  /** As on SIGTERM: what is under way is interrupted and goes on after the next start. */
  async stop(): Promise<void> {
    this.#stopping = true;
    this.upSince = null;
    await Promise.all([this.control.driver.stop(), this.#workers?.stop(), this.control.sessions.close()]);
  }

  /** The run is over: lets go of every signal that somebody still listens to, so that nothing of it stays in memory. */
  dispose(): void {
    this.kill();
    void this.stop().catch(() => {});
  }

  kill(): void {
    this.alive = false;
    this.upSince = null;
    this.#store.abandon();
  }

  /** Reads what is stored, without a delay and without a chance to die. */
  storedRows(): Store {
    return { ...this.control.store, read: async (_label, work) => work(this.#desk.database.tx) };
  }

  /** The context of one request, so that its writes can be told from others'. */
  controlFor(request: RequestInfo): Control {
    return { ...this.control, store: this.#store.viewFor(request) };
  }

  #portsOf(): ControlPorts {
    const { scenario, scheduler, network, auditor } = this.#desk;
    const prng = new Prng(scenario.seed, `ids of ${this.name}`);
    const extensions = new Map<string, readonly [Extension, Extension]>();
    for (const { id } of scenario.backends) {
      const transport = network.transportFor(id, this);
      const options = {
        id,
        transport,
        provisionTimeoutSeconds: 8,
        teardownWaitMs: 1_500,
        pageSize: 7,
      };
      extensions.set(id, [
        createSaasStubExtension({ ...options, price: priceOf(id, false) }),
        createSaasStubExtension({ ...options, price: priceOf(id, true) }),
      ]);
    }
    const isChanged = () => Math.floor(scheduler.now / scenario.priceChangeMs) % 2 === 1;
    const current = (both: readonly [Extension, Extension]) => both[isChanged() ? 1 : 0];
    return {
      store: this.#store.viewFor(null),
      clock: simClock(scheduler, this),
      ids: {
        next: (prefix) => `${prefix}_${letters(prng)}${letters(prng)}`,
        random: () => prng.float(),
      },
      log: auditLog(auditor, () => this.#stopping),
      ledger,
      extensions: {
        get: (id) => {
          const both = extensions.get(id);
          return both && current(both);
        },
        all: () => [...extensions.values()].map(current),
        health: () => HEALTH,
        version: 'simulation',
      },
      health: new HealthBook(),
      uses: new UseBook(),
      settings: scenario.settings,
      owner: OWNER,
      instance: this.name,
      catalogue: () => catalogue,
      resolveSecrets: async () => [],
      profilesChanged: async () => {},
    };
  }
}

function letters(prng: Prng): string {
  return prng.uint32().toString(36).padStart(7, '0');
}

function simClock(scheduler: Scheduler, process: Owner): Clock {
  const what = { owner: process, victim: process, label: 'sleep' };
  return {
    now: () => scheduler.now,
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        if (signal?.aborted) {
          reject(signal.reason);
          return;
        }
        const onAbort = () => {
          cancel();
          reject(signal?.reason);
        };
        const cancel = scheduler.after(ms, what, () => {
          signal?.removeEventListener('abort', onAbort);
          resolve();
        });
        signal?.addEventListener('abort', onAbort, { once: true });
      }),
  };
}

/** What the program itself calls an error, and any exception that is not one of ours, is a defect. */
function auditLog(auditor: Desk['auditor'], isStopping: () => boolean): Log {
  const errorIn = (fields: object) => ('err' in fields ? fields.err : undefined);
  return {
    debug: () => {},
    info: () => {},
    warn: (fields, message) => {
      const error = errorIn(fields);
      if (error !== undefined && !(error instanceof SandboxerError) && !isStopping())
        auditor.defect(message, error);
    },
    error: (fields, message) => auditor.defect(message, errorIn(fields)),
  };
}
