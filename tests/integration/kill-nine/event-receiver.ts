import type { Server } from 'node:http';
import { createServer } from 'node:http';

interface Told {
  readonly seq: number;
  readonly subject: string;
  readonly subjectSeq: number;
  readonly type: string;
}

/** Takes events, fails now and then, and remembers the first time each came. */
export class EventReceiver {
  readonly #server: Server;
  readonly #seen = new Map<string, number[]>();
  readonly #random: () => number;
  outOfOrder: string[] = [];
  received = 0;

  constructor(random: () => number) {
    this.#random = random;
    this.#server = createServer((request, response) => {
      let body = '';
      request.on('data', (chunk: Buffer) => (body += chunk.toString()));
      request.on('end', () => {
        const roll = this.#random();
        if (roll < 0.05) return void response.writeHead(500).end();
        this.#take(JSON.parse(body) as Told);
        // Taken, but the sender never learns: it will come again.
        if (roll < 0.1) return void response.destroy();
        response.writeHead(204).end();
      });
      request.on('error', () => {});
    });
  }

  listen(path: string): Promise<void> {
    return new Promise((resolve) => this.#server.listen(path, resolve));
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #take({ subject, subjectSeq, type }: Told): void {
    this.received += 1;
    const seen = this.#seen.get(subject) ?? [];
    if (seen.includes(subjectSeq)) return;
    const last = seen.at(-1) ?? 0;
    if (subjectSeq !== last + 1) this.outOfOrder.push(`${subject}: ${type} ${subjectSeq} after ${last}`);
    seen.push(subjectSeq);
    this.#seen.set(subject, seen);
  }

  /** How many different events of the subject came. */
  countOf(subject: string): number {
    return this.#seen.get(subject)?.length ?? 0;
  }
}
