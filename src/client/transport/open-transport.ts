import type { SandboxerConnectionError } from './connection-error.ts';
import { defaultSocketPath, parseServerAddress } from './server-address.ts';
import { Transport } from './transport.ts';

/** Copy of the contract's `API_VERSION`; a test compares the two. */
export const API_VERSION = 1;

const DEFAULT_TIMEOUT_MS = 60_000;
const DEFAULT_RETRIES = 3;

export interface ClientOptions {
  /** `http://…`, `https://…` or `unix:/path`. Default: `SANDBOXER_URL`, then the socket of the embedded default. */
  readonly url?: string | undefined;
  /** Default: `SANDBOXER_KEY`. The local socket needs none. */
  readonly key?: string | undefined;
  /** Workspace other than the key's own, where the key may act in it. */
  readonly workspace?: string | undefined;
  /** Aborts all requests of this client. */
  readonly signal?: AbortSignal | undefined;
  /** Time limit for the answer to one request; requests that wait in the server get that time, too. */
  readonly timeoutMs?: number | undefined;
  readonly maxRetries?: number | undefined;
  /** For programs that send one or two requests and end: a unix socket is then opened anew for each plain request. */
  readonly brief?: boolean | undefined;
  /** Called once per request when no server was reached; resolves when another try makes sense, rejects to give up. */
  readonly onUnreachable?: ((error: SandboxerConnectionError) => Promise<void>) | undefined;
}

export function openTransport(options: ClientOptions): Transport {
  const { env } = process;
  const key = options.key ?? env.SANDBOXER_KEY;
  return new Transport({
    address: parseServerAddress(options.url ?? (env.SANDBOXER_URL || `unix:${defaultSocketPath(env)}`)),
    headers: {
      'sandboxer-api-version': String(API_VERSION),
      'user-agent': 'sand-boxer-client',
      ...(key ? { authorization: `Bearer ${key}` } : {}),
      ...(options.workspace === undefined ? {} : { 'sandboxer-workspace': options.workspace }),
    },
    signal: options.signal,
    timeoutMs: options.timeoutMs ?? DEFAULT_TIMEOUT_MS,
    maxRetries: options.maxRetries ?? DEFAULT_RETRIES,
    brief: options.brief ?? false,
    onUnreachable: options.onUnreachable,
  });
}
