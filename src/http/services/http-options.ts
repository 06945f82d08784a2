import type { IncomingMessage } from 'node:http';
import type { Registry } from 'prom-client';
import type { Profile } from '../../contract/profiles/profile.ts';
import type { Control } from '../../control/control.ts';
import type { Log } from '../../core/ports/log.ts';
import type { Caller } from '../../core/tenancy/caller.ts';
import type { RateLimits } from '../bounds/rate-limits.ts';
import type { PreviewOrigin } from '../preview/preview-origin.ts';

/** The bounds on everything a client can make the server hold. Sizes are bytes, times milliseconds. */
export interface HttpLimits {
  /** A JSON body, unless its route needs more. */
  readonly jsonBytes: number;
  /** A JSON body that carries instructions, variables or long lists. */
  readonly largeJsonBytes: number;
  /** The body of an exec: input of the program is part of it. */
  readonly execBytes: number;
  /** Values in one JSON body. */
  readonly jsonValues: number;
  readonly largeJsonValues: number;
  /** The most bytes of a file or tree that is written through the API. */
  readonly uploadBytes: number;
  /** Output kept of each stream when an exec is answered as one JSON document. */
  readonly execOutputBytes: number;
  readonly headerBytes: number;
  readonly headersMs: number;
  /** A JSON body is complete within this time. */
  readonly bodyMs: number;
  /** The longest silence in the middle of a streamed upload. */
  readonly idleUploadMs: number;
  /** The longest wait that a request may ask for. */
  readonly waitMs: number;
  /** Open streams (events, exec, watch, tunnels) of one key. */
  readonly streamsPerKey: number;
  /** The most bytes that one event subscriber may leave unread before it is dropped. */
  readonly subscriberBytes: number;
  /** Bodies, messages and output that requests of one key make the server hold, together. */
  readonly bufferedPerKey: number;
  /** As `bufferedPerKey`, for all keys together. */
  readonly bufferedBytes: number;
  /** The first message of a WebSocket that begins with a request. */
  readonly firstMessageBytes: number;
  /** A message of a WebSocket is complete within this time. */
  readonly messageMs: number;
  readonly heartbeatMs: number;
  /** How long a stop waits for requests in flight. */
  readonly shutdownMs: number;
}

const MIB = 1_048_576;

export const DEFAULT_HTTP_LIMITS: HttpLimits = {
  jsonBytes: MIB / 4,
  largeJsonBytes: MIB,
  execBytes: 10 * MIB,
  jsonValues: 10_000,
  largeJsonValues: 50_000,
  uploadBytes: 64 * 1024 * MIB,
  execOutputBytes: 10 * MIB,
  headerBytes: 32 * 1024,
  headersMs: 15_000,
  bodyMs: 30_000,
  idleUploadMs: 60_000,
  waitMs: 15 * 60_000,
  streamsPerKey: 4096,
  subscriberBytes: MIB,
  bufferedPerKey: 64 * MIB,
  bufferedBytes: 128 * MIB,
  firstMessageBytes: MIB,
  messageMs: 30_000,
  heartbeatMs: 15_000,
  shutdownMs: 10_000,
};

/** A profile document as it was sent: parsed JSON, or YAML text. */
export type ProfileUpload =
  | { readonly kind: 'json'; readonly document: unknown }
  | { readonly kind: 'yaml'; readonly text: string };

interface ParsedProfile {
  readonly profile: Profile;
  readonly source: Readonly<Record<string, unknown>>;
}

export interface HttpOptions {
  readonly control: Control;
  /** The reference of the API as one page; without it there is none to show. */
  readonly apiPage?: () => string;
  /** The version of the product. */
  readonly version: string;
  readonly log: Log | false;
  readonly metrics: Registry;
  /** Authenticates the sender; rejects with `SBX_UNAUTHENTICATED`. `callerByTransport` is the usual implementation. */
  callerFor(request: IncomingMessage): Caller | Promise<Caller>;
  isReady(): boolean;
  /** Throws `SBX_PROFILE_INVALID` with every issue. */
  parseProfile(upload: ProfileUpload): ParsedProfile;
  readonly limits?: Partial<HttpLimits>;
  /** The origin for ports inside sandboxes; previews are refused without it. */
  readonly preview?: PreviewOrigin;
  /** The rate limits that the servers of one process share; without them, no caller is limited. */
  readonly rates?: RateLimits;
  /** The beginning of links, such as `https://sandboxes.example`. Links are paths without it. */
  readonly publicUrl?: string;
  /** Metrics cover every workspace: they need the scope `server` unless this says otherwise. */
  readonly publicMetrics?: boolean;
}
