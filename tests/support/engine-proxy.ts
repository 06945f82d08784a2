/** Stands between ext.docker and a real engine, and does to chosen requests what networks and broken engines do. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { createServer, request } from 'node:http';
import { connect } from 'node:net';

type Treatment = (incoming: IncomingMessage, response: ServerResponse) => void;

export class EngineProxy {
  readonly socket: string;
  readonly #engine: string;
  readonly #server: Server;
  /** Decides over each request; `null` lets it through. */
  rule: (line: string) => Treatment | null = () => null;

  constructor(engine: string, socket: string) {
    this.#engine = engine;
    this.socket = socket;
    this.#server = createServer((incoming, response) => this.#serve(incoming, response));
    this.#server.on('upgrade', (incoming, client, head) => {
      const upstream = connect(this.#engine, () => {
        const headers = incoming.rawHeaders.flatMap((value, at, all) =>
          at % 2 === 0 ? [`${value}: ${all[at + 1]}`] : [],
        );
        upstream.write(`${incoming.method} ${incoming.url} HTTP/1.1\r\n${headers.join('\r\n')}\r\n\r\n`);
        upstream.write(head);
        client.pipe(upstream).pipe(client);
      });
      upstream.on('error', () => client.destroy());
      client.on('error', () => upstream.destroy());
    });
  }

  async open(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(this.socket, resolve));
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  #serve(incoming: IncomingMessage, response: ServerResponse): void {
    const treatment = this.rule(`${incoming.method} ${incoming.url}`);
    if (treatment !== null) {
      treatment(incoming, response);
      return;
    }
    const { method, url, headers } = incoming;
    const upstream = request({ socketPath: this.#engine, method, path: url, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    upstream.on('error', () => response.destroy());
    incoming.pipe(upstream);
  }
}

/** Takes the request and never answers. */
export const stall: Treatment = (incoming) => void incoming.resume();

export function answer(status: number, body: string, type = 'application/json'): Treatment {
  return (incoming, response) => {
    incoming.resume();
    response.writeHead(status, { 'content-type': type, 'api-version': '1.41' });
    response.end(body);
  };
}

/** Begins well and never ends. */
export function flood(start: string, piece: string): Treatment {
  return (incoming, response) => {
    incoming.resume();
    response.writeHead(200, { 'content-type': 'application/json' });
    response.write(start);
    const pour = () => {
      while (!response.destroyed && response.write(piece));
      if (!response.destroyed) response.once('drain', pour);
    };
    pour();
  };
}
