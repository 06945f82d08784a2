import type { IncomingMessage } from 'node:http';
import type { Server, Socket } from 'node:net';
import { SandboxerError } from '../../contract/errors/errors.ts';
import { KeyScope } from '../../contract/tenancy/tenancy.ts';
import type { ControlPorts } from '../../control/ports/control-ports.ts';
import { authenticate, hashSecret } from '../../control/tenancy/authenticate.ts';
import type { Caller } from '../../core/tenancy/caller.ts';
import { trustedProxies } from './client-address.ts';
import { WrongKeys } from './wrong-keys.ts';

const BEARER = /^bearer +([\x21-\x7e]{8,512})$/i;

/** The administrator who owns the unix socket. A process that may open the socket may do everything. */
export function localCaller(workspaceId: string, orgId: string): Caller {
  return {
    actor: 'adm',
    workspaceId,
    orgId,
    keyId: null,
    scopes: new Set(KeyScope.options),
    local: true,
  };
}

/** Asks the listening socket itself: a connection's own addresses are gone once the peer has hung up. */
function isUnixServer(server: Server): boolean {
  return typeof server.address() === 'string';
}

/**
 * Authenticates by the key wherever one is sent. Without a key, a unix socket gives the local administrator, and TCP a refusal.
 */
export function callerByTransport(
  deps: ControlPorts,
  local: Caller,
  wrongKeys = new WrongKeys(deps.clock, trustedProxies([])),
): (request: IncomingMessage) => Caller | Promise<Caller> {
  const unix = new WeakMap<Server, boolean>();
  const fromUnix = (socket: Socket & { server?: Server }) => {
    const { server } = socket;
    if (!server) return false;
    const known = unix.get(server);
    if (known !== undefined) return known;
    const answer = isUnixServer(server);
    unix.set(server, answer);
    return answer;
  };
  return (request) => {
    const { authorization } = request.headers;
    if (authorization === undefined) {
      if (fromUnix(request.socket)) return local;
      throw new SandboxerError('SBX_UNAUTHENTICATED', 'The request carries no key.');
    }
    return callerByKey(deps, request, wrongKeys);
  };
}

async function callerByKey(
  deps: ControlPorts,
  request: IncomingMessage,
  wrongKeys: WrongKeys,
): Promise<Caller> {
  const secret = BEARER.exec(request.headers.authorization ?? '')?.[1];
  const caller = secret === undefined ? null : await authenticate(deps, hashSecret(secret));
  if (caller) return caller;
  throw wrongKeys.refusal(request);
}
