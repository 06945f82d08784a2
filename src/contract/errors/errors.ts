import { z } from 'zod';
import { Creation } from '../values/state.ts';
import { Fault } from './fault.ts';

interface CatalogueEntry {
  readonly status: number;
  /** The party whose fault the error is. The health of backends reads this field and no other list of codes. */
  readonly fault: Fault;
  /** Whether another backend may accept the same request: a caller's fault without it ends the attempts. */
  readonly elsewhere?: true;
  /** Whether the *caller* may send the same request again with a hope of success. Fallback never looks at it. */
  readonly retryable: boolean;
  readonly title: string;
  readonly remedy: string;
}

/** All errors that sand-boxer can answer with. Codes are never reused for another meaning. */
export const ERRORS = {
  SBX_INVALID_REQUEST: {
    status: 400,
    fault: 'caller',
    retryable: false,
    title: 'The request is not valid',
    remedy: 'Correct the named field and send the request again.',
  },
  SBX_CONFIG_INVALID: {
    status: 400,
    fault: 'server',
    retryable: false,
    title: 'The configuration is not valid',
    remedy: 'Correct the named setting; the configuration reference lists them all.',
  },
  SBX_UNAUTHENTICATED: {
    status: 401,
    fault: 'caller',
    retryable: false,
    title: 'No valid key was given',
    remedy: 'Send "Authorization: Bearer <key>" with a key that is neither revoked nor expired.',
  },
  SBX_PROVIDER_KEY_UNUSABLE: {
    status: 502,
    fault: 'key',
    retryable: false,
    title: 'A stored key of the vendor cannot be used',
    remedy: 'Set the provider key again, or restore the master key that sealed it.',
  },
  SBX_INSUFFICIENT_CREDITS: {
    status: 402,
    fault: 'caller',
    retryable: false,
    title: 'Not enough credits',
    remedy: 'Add credits, ask for a shorter ttl, or choose a cheaper profile.',
  },
  SBX_BUDGET_EXCEEDED: {
    status: 402,
    fault: 'caller',
    retryable: false,
    title: 'A budget is used up',
    remedy: 'Raise the budget or wait until its period starts anew.',
  },
  SBX_FORBIDDEN: {
    status: 403,
    fault: 'caller',
    retryable: false,
    title: 'This key may not do that',
    remedy: 'Use a key with the named scope.',
  },
  SBX_ELEVATION_REFUSED: {
    status: 403,
    fault: 'caller',
    retryable: false,
    title: 'Elevated access needs an administrator',
    remedy: 'Use an "adm" key, or leave out the elevated input.',
  },
  SBX_REF_REFUSED: {
    status: 403,
    fault: 'caller',
    retryable: false,
    title: 'The server does not fetch or read that',
    remedy: 'Upload it first (sandboxer does, given a path), or name a repository on a host that is allowed.',
  },
  SBX_NOT_FOUND: {
    status: 404,
    fault: 'caller',
    retryable: false,
    title: 'There is no such resource',
    remedy: 'List the resources to see what exists.',
  },
  SBX_PROFILE_NOT_FOUND: {
    status: 404,
    fault: 'caller',
    retryable: false,
    title: 'There is no such profile',
    remedy: 'List the profiles and choose one of them.',
  },
  SBX_PATH_NOT_FOUND: {
    status: 404,
    fault: 'caller',
    retryable: false,
    title: 'There is no such path in the sandbox',
    remedy: 'List the parent directory to see what exists.',
  },
  SBX_PROCESS_NOT_FOUND: {
    status: 404,
    fault: 'caller',
    retryable: false,
    title: 'There is no such process in the sandbox',
    remedy: 'List the processes of the sandbox.',
  },
  SBX_SERVICE_NOT_FOUND: {
    status: 404,
    fault: 'caller',
    retryable: false,
    title: 'There is no such service in the sandbox',
    remedy: 'Name one of the services that the error lists.',
  },
  SBX_METHOD_NOT_ALLOWED: {
    status: 405,
    fault: 'caller',
    retryable: false,
    title: 'The method is not allowed here',
    remedy: 'See /v1/openapi.json for the methods of each path.',
  },
  SBX_NOT_ACCEPTABLE: {
    status: 406,
    fault: 'caller',
    retryable: false,
    title: 'None of the accepted formats can be produced',
    remedy:
      'Accept application/json, application/x-ndjson, text/event-stream or application/vnd.sandboxer.frames.',
  },
  SBX_INVALID_STATE: {
    status: 409,
    fault: 'caller',
    retryable: false,
    title: 'The sandbox is in a state that does not allow this',
    remedy: 'Look at the state of the sandbox and the lifecycle reference.',
  },
  SBX_REQUEST_TIMEOUT: {
    status: 408,
    fault: 'caller',
    retryable: true,
    title: 'The request did not arrive in time',
    remedy: 'Send the request without pauses.',
  },
  SBX_CONFLICT: {
    status: 409,
    fault: 'caller',
    retryable: true,
    title: 'Another request changed the resource at the same time',
    remedy: 'Read the resource again and repeat the request.',
  },
  SBX_ID_TAKEN: {
    status: 409,
    fault: 'caller',
    retryable: false,
    title: 'The id is taken by a different sandbox',
    remedy: 'Choose another id, or send exactly the request that created it.',
  },
  SBX_NO_ROUTE: {
    status: 409,
    fault: 'caller',
    retryable: false,
    title: 'No backend can fulfil this request',
    remedy: 'Ask for less than what excludes each candidate, or enable a backend that offers it.',
  },
  SBX_PROFILE_IMMUTABLE: {
    status: 409,
    fault: 'caller',
    retryable: false,
    title: 'A published profile version never changes',
    remedy: 'Push the change under a new version.',
  },
  SBX_CANCELLED: {
    status: 409,
    fault: 'caller',
    retryable: false,
    title: 'The sandbox was destroyed before it was ready',
    remedy: 'Create it again if it is still wanted.',
  },
  SBX_GONE: {
    status: 410,
    fault: 'caller',
    retryable: false,
    title: 'The sandbox is no longer there',
    remedy: 'Create a new sandbox.',
  },
  SBX_DISK_FULL: {
    status: 410,
    fault: 'caller',
    retryable: false,
    title: 'The sandbox was ended because it wrote more than it may',
    remedy: 'Create a new one with resources.disk_mb, or have it write less.',
  },
  SBX_PREVIEW_EXPIRED: {
    status: 410,
    fault: 'caller',
    retryable: false,
    title: 'The preview has expired',
    remedy: 'Ask for a new address: "sandboxer url", or POST /v1/sandboxes/{id}/ports.',
  },
  SBX_PAYLOAD_TOO_LARGE: {
    status: 413,
    fault: 'caller',
    retryable: false,
    title: 'The body is larger than allowed',
    remedy: 'Send less, or use the streaming file routes.',
  },
  SBX_UNSUPPORTED_MEDIA: {
    status: 415,
    fault: 'caller',
    retryable: false,
    title: 'The body has an unsupported media type',
    remedy: 'Send application/json, or the type that the route documents.',
  },
  SBX_RANGE_NOT_SATISFIABLE: {
    status: 416,
    fault: 'caller',
    retryable: false,
    title: 'The requested range lies outside the file',
    remedy: 'Ask for a range within the size of the file.',
  },
  SBX_IDEMPOTENCY_MISMATCH: {
    status: 422,
    fault: 'caller',
    retryable: false,
    title: 'The idempotency key was used for a different request',
    remedy: 'Use a fresh key for a different request.',
  },
  SBX_PROFILE_INVALID: {
    status: 422,
    fault: 'caller',
    retryable: false,
    title: 'The profile is not valid',
    remedy: 'Correct the named field; the JSON Schema of profiles helps editors.',
  },
  SBX_UNSUPPORTED: {
    status: 422,
    fault: 'caller',
    elsewhere: true,
    retryable: false,
    title: 'The backend does not offer this',
    remedy: 'Choose a profile whose backend declares the capability.',
  },
  SBX_PROVIDER_KEY_REFUSED: {
    status: 422,
    fault: 'caller',
    retryable: false,
    title: 'The vendor refuses this key',
    remedy: 'Send a key that the vendor accepts; nothing was stored.',
  },
  SBX_SECRET_UNRESOLVED: {
    status: 422,
    fault: 'caller',
    retryable: false,
    title: 'A secret could not be resolved',
    remedy: 'Make the secret available to its provider on the server, or correct the reference.',
  },
  SBX_SECRET_DELIVERY: {
    status: 422,
    fault: 'caller',
    elsewhere: true,
    retryable: false,
    title: 'A secret cannot be delivered that way',
    remedy: 'Use a delivery that both the profile allows and the backend offers.',
  },
  SBX_PATH_REFUSED: {
    status: 422,
    fault: 'caller',
    retryable: false,
    title: 'The path cannot be used for this',
    remedy: 'Name a path inside the sandbox that is of the right kind.',
  },
  SBX_COMPOSE_INVALID: {
    status: 422,
    fault: 'caller',
    retryable: false,
    title: 'The compose stack cannot be used',
    remedy: 'Correct the named field of the compose file.',
  },
  SBX_COMPOSE_REFUSED: {
    status: 422,
    fault: 'caller',
    retryable: false,
    title: 'The compose stack would reach out of the sandbox',
    remedy: 'Remove the named field, or ask for an elevated sandbox with an "adm" key.',
  },
  SBX_SETUP_FAILED: {
    status: 422,
    fault: 'caller',
    retryable: false,
    title: 'A setup command failed',
    remedy: 'Correct the setup command of the profile; sandboxer logs --setup shows all it wrote.',
  },
  SBX_IMAGE_UNAVAILABLE: {
    status: 422,
    fault: 'caller',
    elsewhere: true,
    retryable: false,
    title: 'The image cannot be fetched',
    remedy: 'Correct the name of the image, or let the backend reach and log in to its registry.',
  },
  SBX_WORKLOAD_FAILED: {
    status: 422,
    fault: 'caller',
    retryable: false,
    title: 'A program that the request brought failed to start',
    remedy: 'See the detail and the logs of the image or service; correct it and create the sandbox again.',
  },
  SBX_UPGRADE_REQUIRED: {
    status: 426,
    fault: 'caller',
    retryable: false,
    title: 'The client speaks an API version that this server does not',
    remedy: 'Install the client version that matches the server.',
  },
  SBX_QUOTA_EXCEEDED: {
    status: 429,
    fault: 'caller',
    retryable: true,
    title: 'A limit of the workspace is reached',
    remedy: 'Destroy what is no longer needed, or have the limit raised.',
  },
  SBX_SNAPSHOT_DAMAGED: {
    status: 409,
    fault: 'caller',
    retryable: false,
    title: 'The snapshot is damaged',
    remedy: 'Restore another snapshot, or import this one again from a file.',
  },
  SBX_RATE_LIMITED: {
    status: 429,
    fault: 'caller',
    retryable: true,
    title: 'Too many requests',
    remedy: 'Wait for the time in Retry-After.',
  },
  SBX_INTERNAL: {
    status: 500,
    fault: 'server',
    retryable: true,
    title: 'sand-boxer failed',
    remedy: 'Report the request id; the server log has the cause.',
  },
  SBX_MASTER_KEY: {
    status: 500,
    fault: 'server',
    retryable: false,
    title: 'The master key does not open what is stored',
    remedy:
      'Start with the key that sealed the stored secrets, or name it as master_key.previous_file until `sandboxer providers rotate`.',
  },
  SBX_EXTENSION_FAILED: {
    status: 502,
    fault: 'backend',
    retryable: true,
    title: 'The backend failed',
    remedy: 'See the detail; try again or route to another backend.',
  },
  SBX_PREVIEW_FAILED: {
    status: 502,
    fault: 'caller',
    retryable: true,
    title: 'The service inside did not return a valid HTTP response',
    remedy: 'See that it runs, listens on the port of the preview and speaks HTTP/1.1.',
  },
  SBX_PROVISION_FAILED: {
    status: 502,
    fault: 'backend',
    retryable: true,
    title: 'No backend established the sandbox',
    remedy: 'See the attempts; try again or widen the route.',
  },
  SBX_FETCH_FAILED: {
    status: 502,
    fault: 'caller',
    retryable: true,
    title: 'The repository could not be fetched',
    remedy: 'See the detail; correct the address, the ref or the credential.',
  },
  SBX_PUBLISH_FAILED: {
    status: 502,
    fault: 'server',
    retryable: true,
    title: 'The capability entry could not be published',
    remedy: 'See the detail; correct reuse_surface in the configuration.',
  },
  SBX_BACKEND_AUTH: {
    status: 502,
    fault: 'key',
    retryable: false,
    title: 'The backend refused our credentials',
    remedy: 'Replace the key of this backend.',
  },
  SBX_HOST_UNREACHABLE: {
    status: 502,
    fault: 'host',
    retryable: true,
    title: 'The host cannot be reached',
    remedy: 'Look at the host with "sandboxer hosts probe <name>"; others are used meanwhile.',
  },
  SBX_HOST_KEY_CHANGED: {
    status: 502,
    fault: 'host',
    retryable: false,
    title: 'The host does not show the key that it was registered with',
    remedy: 'Find out why. If it is right, register the host again with its new key.',
  },
  SBX_BACKEND_LOST: {
    status: 502,
    fault: 'backend',
    retryable: false,
    title: 'The backend no longer has the sandbox',
    remedy: 'Recreate the sandbox, or create a new one.',
  },
  SBX_BACKEND_QUOTA: {
    status: 503,
    fault: 'capacity',
    retryable: true,
    title: 'The backend is out of capacity or quota',
    remedy: 'Try later, raise the quota, or route to another backend.',
  },
  SBX_UNAVAILABLE: {
    status: 503,
    fault: 'server',
    retryable: true,
    title: 'The server is starting or stopping',
    remedy: 'Try again in a moment.',
  },
  SBX_STORE_BUSY: {
    status: 503,
    fault: 'server',
    retryable: true,
    title: 'The database is in use by another server',
    remedy: 'Stop the other server, or give this one its own state directory.',
  },
  SBX_STORE_INCOMPATIBLE: {
    status: 503,
    fault: 'server',
    retryable: false,
    title: 'The database does not fit this version',
    remedy: 'Install the version that wrote it, or newer, or give this one its own state directory.',
  },
  SBX_TIMEOUT: {
    status: 504,
    fault: 'backend',
    retryable: true,
    title: 'It took too long',
    remedy: 'Ask for the sandbox again: the work may still finish.',
  },
} as const satisfies Record<string, CatalogueEntry>;

export type ErrorCode = keyof typeof ERRORS;

/** Whether the same request would fail on every backend. */
export function failsEverywhere(code: string): boolean {
  const entry: CatalogueEntry | undefined = ERRORS[code as ErrorCode];
  return entry?.fault === 'caller' && entry.elsewhere !== true;
}

export const ErrorCode = z.enum(Object.keys(ERRORS) as [ErrorCode, ...ErrorCode[]]);

/** A fault of a request or a document, of which there may be several. */
export const ErrorIssue = z
  .looseObject({ field: z.string(), problem: z.string(), remedy: z.string().optional() })
  .meta({ id: 'ErrorIssue' });
export type ErrorIssue = z.infer<typeof ErrorIssue>;

export interface ErrorExtras {
  readonly cause?: unknown;
  /** The request or document field at fault, as a path: `ttl.max`. */
  readonly field?: string;
  readonly remedy?: string;
  readonly retryable?: boolean;
  readonly creation?: Creation;
  readonly backend?: string;
  readonly retryAfterSeconds?: number;
  /** All faults, where there may be several; the error's own detail names the first. */
  readonly issues?: readonly ErrorIssue[];
  /** Further members of the problem document (snake_case): candidates, shortfall … Never a secret. */
  readonly members?: Readonly<Record<string, unknown>>;
}

const BRAND = Symbol.for('sand-boxer.SandboxerError');

/** The one error class. Everything a caller sees went through the catalogue above. */
export class SandboxerError extends Error {
  /** Recognises errors of another copy of this module, too: that of an extension's package. */
  static override [Symbol.hasInstance](value: unknown): boolean {
    // biome-ignore lint/complexity/noThisInStatic: a subclass inherits this, and is told by its prototype
    if (this !== SandboxerError) return Function.prototype[Symbol.hasInstance].call(this, value);
    return typeof value === 'object' && value !== null && BRAND in value;
  }

  override readonly name = 'SandboxerError';
  readonly [BRAND] = true;
  readonly code: ErrorCode;
  readonly detail: string;
  readonly extras: ErrorExtras;

  constructor(code: ErrorCode, detail: string, extras: ErrorExtras = {}) {
    super(`${code}: ${detail}`, extras.cause === undefined ? undefined : { cause: extras.cause });
    this.code = code;
    this.detail = detail;
    this.extras = extras;
  }

  get status(): number {
    return ERRORS[this.code].status;
  }

  get fault(): Fault {
    return ERRORS[this.code].fault;
  }

  get retryable(): boolean {
    return this.extras.retryable ?? ERRORS[this.code].retryable;
  }

  get remedy(): string {
    return this.extras.remedy ?? ERRORS[this.code].remedy;
  }
}

/** RFC 9457 with our members. */
export const Problem = z
  .looseObject({
    type: z.string(),
    title: z.string(),
    status: z.number().int(),
    detail: z.string(),
    code: ErrorCode,
    remedy: z.string(),
    retryable: z.boolean(),
    fault: Fault,
    request_id: z.string().optional(),
    field: z.string().optional(),
    creation: Creation.optional(),
    backend: z.string().optional(),
    retry_after_seconds: z.number().optional(),
    issues: z.array(ErrorIssue).optional().describe('Everything that is wrong, not only the first.'),
  })
  .meta({ id: 'Problem', description: 'An error: RFC 9457 problem details with a code and a remedy.' });
export type Problem = z.infer<typeof Problem>;

export function toProblem(error: SandboxerError, requestId?: string): Problem {
  const { field, creation, backend, retryAfterSeconds, issues, members } = error.extras;
  return {
    ...members,
    type: `urn:sand-boxer:error:${error.code}`,
    title: ERRORS[error.code].title,
    status: error.status,
    detail: error.detail,
    code: error.code,
    remedy: error.remedy,
    retryable: error.retryable,
    fault: error.fault,
    ...(requestId === undefined ? {} : { request_id: requestId }),
    ...(field === undefined ? {} : { field }),
    ...(creation === undefined ? {} : { creation }),
    ...(backend === undefined ? {} : { backend }),
    ...(retryAfterSeconds === undefined ? {} : { retry_after_seconds: retryAfterSeconds }),
    ...(issues === undefined ? {} : { issues: [...issues] }),
  };
}
