/** The other end of a webhook: checks every signature with the public library, and behaves as badly as it is told. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Webhook } from 'standardwebhooks';

export type Behaviour = 'take' | 'fail' | 'hang' | 'slow' | 'close' | 'lost' | 'redirect' | 'gone' | 'flood';

export interface Received {
  readonly headers: IncomingMessage['headers'];
  readonly path: string;
  readonly body: string;
  // biome-ignore lint/suspicious/noExplicitAny: whatever was sent
  readonly event: any;
}

const SLOW_MS = 120;

export class WebhookReceiver {
  /** What was answered 2xx to, and what was taken without an answer. */
  readonly taken: Received[] = [];
  readonly refused: Received[] = [];
  readonly forged: string[] = [];
  readonly secrets: string[] = [];
  connections = 0;
  /** Of the deliveries that waited for an answer at the same time, the most. */
  mostAtOnce = 0;
  #waiting = 0;
  behave: (received: Received) => Behaviour = () => 'take';
  redirectTo = '';
  #server: Server | null = null;
  #port = 0;

  get url(): string {
    return `http://127.0.0.1:${this.#port}/hook`;
  }

  /** On the same port as before. */
  async listen(): Promise<this> {
    const server = createServer((request, response) => this.#serve(request, response));
    server.on('connection', () => {
      this.connections += 1;
    });
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(this.#port, '127.0.0.1', resolve);
    });
    this.#server = server;
    this.#port = (server.address() as AddressInfo).port;
    return this;
  }

  async close(): Promise<void> {
    const server = this.#server;
    this.#server = null;
    server?.closeAllConnections();
    await new Promise((resolve) => (server ? server.close(resolve) : resolve(null)));
  }

  /** The numbers of a subject's events in the order in which they first came. */
  firstOrder(subject: string): number[] {
    const seen = new Set<number>();
    for (const { event } of this.taken) if (event.subject === subject) seen.add(Number(event.sequence));
    return [...seen];
  }

  ids(): Set<string> {
    return new Set(this.taken.map(({ event }) => event.id as string));
  }

  #serve(request: IncomingMessage, response: ServerResponse): void {
    this.mostAtOnce = Math.max(this.mostAtOnce, ++this.#waiting);
    response.once('close', () => {
      this.#waiting -= 1;
    });
    let body = '';
    request.setEncoding('utf8');
    request.on('data', (chunk: string) => {
      body += chunk;
    });
    request.on('error', () => {});
    request.on('end', () => {
      const received = { headers: request.headers, path: request.url ?? '', body, event: JSON.parse(body) };
      if (this.secrets.length > 0) this.#verify(received);
      this.#answer(received, response);
    });
  }

  #verify({ headers, body }: Received): void {
    const signed = headers as Record<string, string>;
    for (const secret of this.secrets) {
      try {
        new Webhook(secret).verify(body, signed);
      } catch (error) {
        this.forged.push(`${signed['webhook-id']}: ${(error as Error).message}`);
      }
    }
  }

  #answer(received: Received, response: ServerResponse): void {
    const behaviour = this.behave(received);
    if (behaviour === 'take' || behaviour === 'slow' || behaviour === 'lost' || behaviour === 'flood') {
      this.taken.push(received);
    } else this.refused.push(received);
    if (behaviour === 'take') response.writeHead(204).end();
    else if (behaviour === 'slow') setTimeout(() => response.writeHead(200).end('thanks'), SLOW_MS);
    else if (behaviour === 'fail') response.writeHead(500).end('no');
    else if (behaviour === 'gone') response.writeHead(410).end();
    else if (behaviour === 'redirect') response.writeHead(307, { location: this.redirectTo }).end();
    else if (behaviour === 'flood') this.#flood(response);
    else if (behaviour !== 'hang') response.destroy();
  }

  #flood(response: ServerResponse): void {
    response.writeHead(200);
    const more = () => {
      while (!response.destroyed && response.write('x'.repeat(65_536))) {}
      if (!response.destroyed) response.once('drain', more);
    };
    more();
  }
}
