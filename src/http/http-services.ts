import { SandboxerError } from '../contract/errors.ts';
import type { ControlDeps } from '../control/deps.ts';
import type { Use } from '../control/use-sandbox.ts';
import type { Log } from '../core/log.ts';
import { silentLog } from '../core/log.ts';
import type { Exchange } from './exchange.ts';
import type { HttpLimits, HttpOptions } from './http-options.ts';
import { DEFAULT_HTTP_LIMITS } from './http-options.ts';
import { Presenter } from './present.ts';

/** What the routes share. */
export class HttpServices {
  readonly options: HttpOptions;
  readonly limits: HttpLimits;
  readonly deps: ControlDeps;
  readonly use: Use;
  readonly log: Log;
  readonly present: Presenter;
  /** Requests that wait or stream, to be told when the server stops. */
  readonly open = new Set<Exchange>();
  #stopping = false;

  constructor(options: HttpOptions) {
    const { deps, sessions, activity } = options;
    this.options = options;
    this.limits = { ...DEFAULT_HTTP_LIMITS, ...options.limits };
    this.deps = deps;
    this.use = { deps, sessions, activity };
    this.log = options.log === false ? silentLog : options.log;
    this.present = new Presenter(options.publicUrl ?? '');
  }

  requireRunning(): void {
    if (this.#stopping)
      throw new SandboxerError('SBX_UNAVAILABLE', 'The server is stopping.', { retryAfterSeconds: 1 });
  }

  stop(): void {
    this.#stopping = true;
    for (const exchange of this.open) exchange.stop();
  }
}
