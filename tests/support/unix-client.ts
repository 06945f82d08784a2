/** A plain keep-alive HTTP client on a unix socket: what is measured or killed is then the server alone. */
import { Agent, request } from 'node:http';

export interface Answer {
  readonly status: number;
  readonly body: string;
}

export class UnixClient {
  readonly #socketPath: string;
  readonly #agent: Agent;

  constructor(socketPath: string, connections: number) {
    this.#socketPath = socketPath;
    this.#agent = new Agent({ keepAlive: true, maxSockets: connections });
  }

  call(method: string, path: string, body?: unknown): Promise<Answer> {
    const payload = body === undefined ? undefined : JSON.stringify(body);
    return new Promise((resolve, reject) => {
      const outgoing = request(
        {
          socketPath: this.#socketPath,
          agent: this.#agent,
          method,
          path,
          headers:
            payload === undefined
              ? {}
              : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(payload) },
        },
        (response) => {
          let text = '';
          response.setEncoding('utf8');
          response.on('data', (chunk: string) => (text += chunk));
          response.on('end', () => resolve({ status: response.statusCode ?? 0, body: text }));
          response.on('error', reject);
        },
      );
      outgoing.on('error', reject);
      outgoing.end(payload);
    });
  }

  /** Like `call`, and anything but the expected status is an error: a benchmark of failures is none. */
  async expect<T>(status: number, method: string, path: string, body?: unknown): Promise<T> {
    const answer = await this.call(method, path, body);
    if (answer.status !== status)
      throw new Error(`${method} ${path} answered ${answer.status}: ${answer.body.slice(0, 400)}`);
    return JSON.parse(answer.body) as T;
  }

  close(): void {
    this.#agent.destroy();
  }
}
