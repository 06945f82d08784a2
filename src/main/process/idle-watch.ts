import type { Server } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Store, Tx } from '../../core/ports/store/store.ts';

/** Tracks connections and requests of the server, present and past. */
export class Callers {
  readonly #servers: readonly Server[];
  lastSeenAt = Date.now();

  constructor(servers: readonly Server[]) {
    this.#servers = servers;
    for (const server of servers) server.on('request', () => this.#seen());
  }

  #seen(): void {
    this.lastSeenAt = Date.now();
  }

  /** Returns whether a connection is open: a stream of events is only one request. */
  async present(): Promise<boolean> {
    const counts = await Promise.all(
      this.#servers.map(
        (server) =>
          new Promise<number>((resolve) => {
            server.getConnections((_error, count) => resolve(count ?? 0));
          }),
      ),
    );
    return counts.some((count) => count > 0);
  }
}

async function sinksAreWaited(tx: Tx): Promise<boolean> {
  const lastSeq = await tx.events.lastSeq();
  for (const { sinkId, cursor, active } of await tx.outbox.sinks()) {
    if (active && (cursor < lastSeq || (await tx.outbox.waiting(sinkId)).length > 0)) return true;
  }
  return false;
}

/** Returns whether a sandbox is not destroyed, or an event is not delivered to its sink. */
async function hasWork(store: Store): Promise<boolean> {
  return store.read('idle', async (tx) => (await tx.sandboxes.countByState()).size > 0 || sinksAreWaited(tx));
}

/** Resolves after `afterMs` without a caller, a sandbox or an undelivered event. */
export async function whenIdle(callers: Callers, store: Store, afterMs: number): Promise<void> {
  let idleSince = Date.now();
  for (;;) {
    await sleep(Math.min(afterMs / 4, 60_000), undefined, { ref: false });
    if ((await callers.present()) || (await hasWork(store))) idleSince = Date.now();
    idleSince = Math.max(idleSince, callers.lastSeenAt);
    if (Date.now() - idleSince >= afterMs) return;
  }
}
