export type ConnectionFailure = 'unreachable' | 'timeout' | 'lost' | 'protocol';

const REMEDIES: Readonly<Record<ConnectionFailure, string>> = {
  unreachable: 'Check the URL and that the server runs.',
  timeout: 'Try again, or allow more time.',
  lost: 'Look at what exists before you repeat a request that changes something.',
  protocol: 'Check that the URL is that of a sand-boxer server of a matching version.',
};

/** Error without an answer: no server was reached, it took too long, or the connection broke. */
export class SandboxerConnectionError extends Error {
  override readonly name = 'SandboxerConnectionError';
  readonly failure: ConnectionFailure;
  readonly remedy: string;
  /** Whether the server may have received the request. */
  readonly sent: boolean;

  constructor(failure: ConnectionFailure, message: string, sent: boolean, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.failure = failure;
    this.remedy = REMEDIES[failure];
    this.sent = sent;
  }
}

interface SystemError extends Error {
  readonly code?: unknown;
  readonly syscall?: unknown;
}

/** Failures of a request that never left this machine. */
const BEFORE_SENDING: ReadonlySet<unknown> = new Set(['connect', 'getaddrinfo']);

function reasonOf(error: SystemError): string {
  switch (error.code) {
    case 'ECONNREFUSED':
      return 'connection refused';
    case 'ENOENT':
      return 'the socket does not exist';
    case 'EACCES':
      return 'this user may not open the socket';
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return 'the name has no address';
    default:
      return error.message;
  }
}

export function connectionErrorFrom(error: SystemError, address: string): SandboxerConnectionError {
  if (BEFORE_SENDING.has(error.syscall)) {
    const message = `Cannot reach ${address}: ${reasonOf(error)}.`;
    return new SandboxerConnectionError('unreachable', message, false, error);
  }
  if (String(error.code).startsWith('HPE_')) {
    return new SandboxerConnectionError('protocol', `${address} does not speak HTTP.`, true, error);
  }
  return new SandboxerConnectionError(
    'lost',
    `The connection to ${address} broke: ${error.message}.`,
    true,
    error,
  );
}
