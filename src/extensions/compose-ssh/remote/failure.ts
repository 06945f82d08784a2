import type { ErrorCode } from '../../../contract/errors/errors.ts';
import { ERRORS, SandboxerError } from '../../../contract/errors/errors.ts';
import type { Creation } from '../../../contract/values/state.ts';

export const BACKEND = 'ext.compose-ssh';

interface Sign {
  readonly pattern: RegExp;
  readonly code: ErrorCode;
  readonly what: string;
  readonly remedy: string;
}

/** Messages of compose, the engine and tar for failures that are neither their fault nor the backend's. */
const SIGNS: readonly Sign[] = [
  {
    pattern: /no space left on device|disk quota exceeded/i,
    code: 'SBX_BACKEND_QUOTA',
    what: 'The disk of the host is full',
    remedy: 'Free space on the host (runbook "full disk"), or place the sandbox elsewhere.',
  },
  {
    pattern:
      /all predefined address pools have been fully subnetted|could not find an available.*address pool/i,
    code: 'SBX_BACKEND_QUOTA',
    what: 'The host has no addresses left for networks',
    remedy: 'Destroy stacks on this host, or widen default-address-pools of its engine.',
  },
  {
    pattern:
      /pull access denied|manifest unknown|manifest for .* not found|repository does not exist|no such image|failed to resolve reference|error pulling image|\/v2\/|dial tcp.*lookup/i,
    code: 'SBX_COMPOSE_INVALID',
    what: 'An image is not there and cannot be pulled',
    remedy: 'Correct the name of the image, load it on the host, or let the host reach its registry.',
  },
  {
    pattern: /is unhealthy|dependency failed to start|didn't complete successfully/i,
    code: 'SBX_COMPOSE_INVALID',
    what: 'A service that others wait for did not become healthy',
    remedy: 'See its log; or leave the condition out of depends_on and judge its health yourself.',
  },
  {
    pattern:
      /cannot connect to the docker daemon|couldn't connect to docker daemon|error while fetching server api version|is the docker daemon running/i,
    code: 'SBX_HOST_UNREACHABLE',
    what: 'The engine of the host does not answer',
    remedy: 'Start the engine of this host; see "sandboxer hosts probe".',
  },
  {
    pattern: /permission denied.*docker(?:\.sock| daemon)/i,
    code: 'SBX_BACKEND_AUTH',
    what: 'Our user may not use the engine of the host',
    remedy: 'Put the user into the group of the engine ("docker").',
  },
  {
    pattern: /requires BuildKit|unknown flag: (?:checksum|exclude|keep-git-dir|link|parents)\b/i,
    code: 'SBX_COMPOSE_INVALID',
    what: 'The Dockerfile needs BuildKit, which the compose of this host does not build with',
    remedy:
      'Write it without "RUN --mount", "COPY --link", "--chmod" and their like, name a built image, or use a host with compose v2.',
  },
  {
    pattern: /failed to build|executor failed running|returned a non-zero code/i,
    code: 'SBX_COMPOSE_INVALID',
    what: 'An image could not be built',
    remedy: 'See the detail. Without network.default: allow a build has no network.',
  },
  {
    pattern:
      /OCI runtime create failed|failed to create shim|exec: ".*": (?:executable file not found|stat)/i,
    code: 'SBX_COMPOSE_INVALID',
    what: 'A service cannot be started',
    remedy: 'Correct its command, entrypoint or mounts.',
  },
];

const MOST_SHOWN = 400;

/** Returns one printable line: most of the text was written by another machine. */
export function shown(text: string): string {
  return text
    .replaceAll(/\x1b\[[0-9;]*[A-Za-z]/g, '')
    .replaceAll(/[\p{C}\p{Zl}\p{Zp}]+/gu, ' ')
    .trim()
    .slice(-MOST_SHOWN);
}

/** Maps the output of a failed command on the host to an error of the catalogue. */
export function hostFailure(what: string, said: string, creation: Creation): SandboxerError {
  const sign = SIGNS.find(({ pattern }) => pattern.test(said));
  const detail = sign === undefined ? what : sign.what;
  return new SandboxerError(sign?.code ?? 'SBX_EXTENSION_FAILED', `${detail}: ${shown(said)}`, {
    backend: BACKEND,
    creation,
    ...(sign === undefined ? {} : { remedy: sign.remedy }),
  });
}

/**
 * Builds the error of a stack that failed on its host. `said` may contain output of an untrusted program, so it never proves a
 * fault of the backend: while the engine answers, the stack is at fault, or the host has no room.
 */
export function stackFailure(what: string, said: string, engineAnswers: boolean): SandboxerError {
  const failure = hostFailure(what, said, 'created');
  if (!engineAnswers || ['caller', 'capacity'].includes(ERRORS[failure.code].fault)) return failure;
  return new SandboxerError('SBX_COMPOSE_INVALID', `${what}: ${shown(said)}`, {
    backend: BACKEND,
    creation: 'created',
    remedy: 'See the detail: compose of the host, or a service of the stack, ended with it.',
  });
}

export function invalid(field: string, detail: string, remedy: string): SandboxerError {
  return new SandboxerError('SBX_INVALID_REQUEST', detail, {
    backend: BACKEND,
    creation: 'not_created',
    field,
    remedy,
  });
}

export function lost(detail: string): SandboxerError {
  return new SandboxerError('SBX_BACKEND_LOST', detail, { backend: BACKEND });
}

export function givenUp(signal: AbortSignal, creation: Creation): SandboxerError {
  const late = signal.reason instanceof DOMException && signal.reason.name === 'TimeoutError';
  return new SandboxerError(late ? 'SBX_TIMEOUT' : 'SBX_CANCELLED', 'It was given up before it was done.', {
    backend: BACKEND,
    creation,
  });
}
