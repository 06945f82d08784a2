import { SandboxerError } from '../../../contract/errors/errors.ts';
import type { Creation } from '../../../contract/values/state.ts';
import type { StubReply } from './protocol.ts';
import { ErrorBody } from './protocol.ts';
import { StubConnectionError } from './transport.ts';

export interface CallScope {
  readonly extensionId: string;
  /** Whether the call makes an object: only then an error has a `creation`. */
  readonly creates: boolean;
}

function extrasOf(
  scope: CallScope,
  creation: Creation,
  rest: { cause?: unknown; retryAfterSeconds?: number } = {},
) {
  return { backend: scope.extensionId, ...(scope.creates ? { creation } : {}), ...rest };
}

/** Maps a reply that is not a success to an error. */
export function replyError(reply: StubReply, scope: CallScope): SandboxerError {
  const parsed = ErrorBody.safeParse(reply.body);
  const { code, message, created } = parsed.success
    ? parsed.data.error
    : { code: 'unreadable', message: `It answered ${reply.status}.`, created: undefined };
  const refused = reply.status < 500 || code === 'capacity';
  const assumed: Creation = refused ? 'not_created' : 'maybe_created';
  const creation: Creation = created === undefined ? assumed : created ? 'created' : 'not_created';
  const retryAfter = Number(reply.headers['retry-after']);
  const wait = Number.isFinite(retryAfter) && retryAfter >= 0 ? { retryAfterSeconds: retryAfter } : {};
  if (reply.status === 401 || reply.status === 403) {
    return new SandboxerError('SBX_BACKEND_AUTH', message, extrasOf(scope, creation));
  }
  if (reply.status === 429 || code === 'capacity') {
    return new SandboxerError('SBX_BACKEND_QUOTA', message, extrasOf(scope, creation, wait));
  }
  if (reply.status === 404) {
    return new SandboxerError(
      scope.creates ? 'SBX_NOT_FOUND' : 'SBX_BACKEND_LOST',
      message,
      extrasOf(scope, creation),
    );
  }
  if (code === 'wrong_state' && !scope.creates) {
    return new SandboxerError('SBX_INVALID_STATE', message, extrasOf(scope, creation));
  }
  if (code === 'name_taken') return new SandboxerError('SBX_CONFLICT', message, extrasOf(scope, creation));
  return new SandboxerError('SBX_EXTENSION_FAILED', message, extrasOf(scope, creation));
}

/** Maps a call without a reply to an error. */
export function callError(thrown: unknown, scope: CallScope, signal: AbortSignal): SandboxerError {
  if (thrown instanceof SandboxerError) return thrown;
  if (thrown instanceof StubConnectionError) {
    const creation = thrown.sent ? 'maybe_created' : 'not_created';
    return new SandboxerError(
      'SBX_EXTENSION_FAILED',
      thrown.message,
      extrasOf(scope, creation, { cause: thrown }),
    );
  }
  if (signal.aborted) {
    const late = signal.reason instanceof DOMException && signal.reason.name === 'TimeoutError';
    const detail = 'The call was given up before the stub answered.';
    const extras = extrasOf(scope, 'maybe_created', { cause: thrown });
    return new SandboxerError(late ? 'SBX_TIMEOUT' : 'SBX_CANCELLED', detail, extras);
  }
  const detail = thrown instanceof Error ? thrown.message : 'The call failed.';
  return new SandboxerError(
    'SBX_EXTENSION_FAILED',
    detail,
    extrasOf(scope, 'maybe_created', { cause: thrown }),
  );
}

/** Returns the error of a successful reply whose body does not fit the protocol. */
export function unreadableReply(scope: CallScope, cause: unknown): SandboxerError {
  const extras = extrasOf(scope, 'maybe_created', { cause });
  return new SandboxerError('SBX_EXTENSION_FAILED', 'The stub’s answer could not be understood.', extras);
}
