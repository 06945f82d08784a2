import { Registry } from 'prom-client';
import { parseProfileDocument, parseProfileText } from '../catalogue/profiles/profile-document.ts';
import { SandboxerError } from '../contract/errors/errors.ts';
import type { EventSink } from '../control/events/deliver-events.ts';
import type { Extension } from '../core/ports/extension.ts';
import { RateLimits } from '../http/bounds/rate-limits.ts';
import { callerByTransport, localCaller } from '../http/keys/caller-for.ts';
import { trustedProxies } from '../http/keys/client-address.ts';
import { WrongKeys } from '../http/keys/wrong-keys.ts';
import { createHttpServer } from '../http/server/server.ts';
import type { HttpOptions, ProfileUpload } from '../http/services/http-options.ts';
import type { ResolvedConfig } from './config/config.ts';
import { createLog } from './ports/log.ts';
import { systemClock } from './ports/system-clock.ts';
import { Previews } from './preview.ts';
import { firstAdminKey } from './process/admin-key.ts';
import { Callers } from './process/idle-watch.ts';
import { DEFAULT_ORG, DEFAULT_WORKSPACE } from './process/installation.ts';
import { ownDirectory } from './process/own-directory.ts';
import { apiPage, packageVersion } from './process/shipped-files.ts';
import { tierUpEarly } from './process/tier-up.ts';
import { prepareSocketPath, restrictSocket } from './process/unix-socket.ts';
import type { ControlPlane } from './wire.ts';
import { wire } from './wire.ts';

export interface ServeOptions {
  readonly config: ResolvedConfig;
  readonly env: NodeJS.ProcessEnv;
  readonly extensions?: readonly Extension[];
  readonly sinks?: readonly EventSink[];
}

export interface RunningServer {
  readonly control: ControlPlane;
  readonly socketPath: string;
  /** Address; `null` when the server listens on the unix socket alone. */
  readonly tcpAddress: string | null;
  /** File of the first administrator's key, if this start made one. */
  readonly adminKeyFile: string | null;
  readonly callers: Callers;
  stop(): Promise<void>;
}

function parseProfile(upload: ProfileUpload) {
  if (upload.kind === 'yaml') {
    const { profile, document } = parseProfileText(upload.text);
    return { profile, source: document };
  }
  return {
    profile: parseProfileDocument(upload.document),
    source: upload.document as Record<string, unknown>,
  };
}

function hostAndPort(tcp: string): { host: string; port: number } {
  const at = tcp.lastIndexOf(':');
  return { host: tcp.slice(0, at).replace(/^\[|\]$/g, ''), port: Number(tcp.slice(at + 1)) };
}

function rateLimits({ per_second, burst }: NonNullable<ResolvedConfig['rate_limit']>): RateLimits {
  return new RateLimits({ perSecond: per_second, burst }, systemClock);
}

/** Number of callers that may connect at the same moment. The system lowers it to its own limit. */
const BACKLOG = 4_096;

/** Starts the whole server: control plane, unix socket for this machine, and TCP for callers with keys when configured. */
export async function serve(options: ServeOptions): Promise<RunningServer> {
  const { config } = options;
  tierUpEarly();
  ownDirectory('SANDBOXER_STATE_DIR', config.stateDir);
  await prepareSocketPath(config.socketPath);
  const log = createLog(config.log.level);
  const control = await wire({ ...options, log });
  const local = localCaller(DEFAULT_WORKSPACE, DEFAULT_ORG);
  const previews = await Previews.open(control, local, config.preview);
  const wrongKeys = new WrongKeys(systemClock, trustedProxies(config.listen.trusted_proxies));
  let ready = false;
  const shared: HttpOptions = {
    control,
    version: packageVersion(),
    apiPage,
    log,
    metrics: new Registry(),
    callerFor: callerByTransport(control, local, wrongKeys),
    isReady: () => ready,
    parseProfile,
    ...(config.rate_limit === null ? {} : { rates: rateLimits(config.rate_limit) }),
    preview: previews,
  };
  const onSocket = await createHttpServer(shared);
  const servers = [onSocket];
  let tcpAddress: string | null = null;
  let adminKeyFile: string | null = null;
  try {
    await onSocket.listen({ path: config.socketPath, backlog: BACKLOG });
    restrictSocket(config.socketPath);
    if (config.listen.tcp !== null) {
      const remote = await createHttpServer(shared);
      servers.push(remote);
      // The key is in place before a caller can connect, and before the server is announced as ready.
      adminKeyFile = await firstAdminKey(control, config.stateDir);
      tcpAddress = await remote.listen({ ...hostAndPort(config.listen.tcp), backlog: BACKLOG });
    }
    ready = true;
  } catch (error) {
    await Promise.all([previews.close(), ...servers.map((server) => server.close())]);
    await control.stop();
    throw listenError(error);
  }
  return {
    control,
    socketPath: config.socketPath,
    tcpAddress,
    adminKeyFile,
    callers: new Callers(servers.map(({ server }) => server)),
    async stop() {
      ready = false;
      await Promise.all([previews.close(), ...servers.map((server) => server.close())]);
      await control.stop();
    },
  };
}

function listenError(error: unknown): unknown {
  const code = (error as NodeJS.ErrnoException).code;
  if (code !== 'EADDRINUSE' && code !== 'EACCES') return error;
  return new SandboxerError('SBX_UNAVAILABLE', `The server cannot listen: ${(error as Error).message}`, {
    cause: error,
    remedy: 'Choose another address in listen.tcp or SANDBOXER_LISTEN.',
  });
}
