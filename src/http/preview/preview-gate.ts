import type { IncomingMessage } from 'node:http';
import { SandboxerError } from '../../contract/errors/errors.ts';
import type { PreviewAccess, PreviewGrant } from './preview-access.ts';
import type { PreviewCookie } from './preview-cookie.ts';
import { TOKEN_HEADER } from './preview-headers.ts';
import type { PreviewTarget } from './preview-target.ts';
import { readTarget } from './preview-target.ts';

export interface GateOptions {
  readonly access: PreviewAccess;
  readonly cookie: PreviewCookie;
  /** The domain whose first label names sandbox and port. */
  readonly domain: string;
  now(): number;
}

export interface Admitted {
  readonly grant: PreviewGrant;
  readonly target: PreviewTarget;
  /** Came in the address: it moves to a cookie, so that it is in no history and no referrer. */
  readonly fromAddress: boolean;
}

const ASK_AGAIN = 'Ask for a new address: "sandboxer url", or POST /v1/sandboxes/{id}/ports.';

/** Decides which visitor may see which port. A refusal is thrown. */
export class PreviewGate {
  readonly #options: GateOptions;

  constructor(options: GateOptions) {
    this.#options = options;
  }

  admit(request: IncomingMessage): Admitted {
    const target = readTarget(request);
    if (!target) {
      throw new SandboxerError('SBX_INVALID_REQUEST', 'The request names no address on this host.', {
        remedy: 'Ask for a path that begins with "/".',
      });
    }
    const named = this.#read(target.host);
    if (!named) {
      throw new SandboxerError('SBX_NOT_FOUND', 'There is no preview at this address.', {
        remedy: ASK_AGAIN,
      });
    }
    if (named.public) return { grant: this.#live(named.grant), target, fromAddress: false };
    const grant = this.#byToken(request, target, named.grant);
    return { grant: this.#live(grant), target, fromAddress: target.token !== null };
  }

  #read(host: string): ReturnType<PreviewAccess['readLabel']> {
    const { access, domain } = this.#options;
    return host.endsWith(`.${domain}`) ? access.readLabel(host.slice(0, -domain.length - 1)) : null;
  }

  #byToken(request: IncomingMessage, target: PreviewTarget, named: PreviewGrant): PreviewGrant {
    const { access, cookie } = this.#options;
    const header = request.headers[TOKEN_HEADER];
    const given = target.token ?? (typeof header === 'string' ? header : null);
    const tokens = given === null ? cookie.tokens(request.headers.cookie) : [given];
    const grants = tokens.flatMap((token) => access.readToken(token, named) ?? []);
    const [grant] = grants.sort((a, b) => b.expiresAt - a.expiresAt);
    if (!grant) {
      throw new SandboxerError('SBX_UNAUTHENTICATED', 'This preview needs its token.', {
        remedy: `Open the whole address that "ports" gave you, or send its token as ${TOKEN_HEADER}.`,
      });
    }
    if (given === null) this.#requireOwnPage(request, named);
    return grant;
  }

  /**
   * Refuses requests that the page of another host caused. A browser sends the cookie whichever page caused the request. Where
   * all previews share a domain, the page of one could so act on another in the visitor's name; another port of the same sandbox
   * may. Only a visit of the address itself is free: an image, a script or a fetch carries no `Origin` when it reads, but
   * `Sec-Fetch-Site` says where it comes from.
   */
  #requireOwnPage(request: IncomingMessage, { sandbox }: PreviewGrant): void {
    const { origin, referer, 'sec-fetch-site': site } = request.headers;
    if (site === 'same-origin' || site === 'none') return;
    if (origin === undefined && (site === undefined || isVisit(request))) return;
    const page = origin ?? referer ?? '';
    const from = URL.canParse(page) ? this.#read(new URL(page).hostname) : null;
    if (from?.grant.sandbox === sandbox) return;
    throw new SandboxerError(
      'SBX_FORBIDDEN',
      'The page of another host asked for this in the visitor’s name.',
      {
        remedy: `Ask from a page of this preview, or send the token as ${TOKEN_HEADER} or in the address.`,
      },
    );
  }

  #live(grant: PreviewGrant): PreviewGrant {
    if (grant.expiresAt * 1000 > this.#options.now()) return grant;
    throw new SandboxerError('SBX_PREVIEW_EXPIRED', 'This preview has expired.');
  }
}

/** Whether the browser shows the answer as a page of its own, which no other page can read. */
function isVisit({ method, headers }: IncomingMessage): boolean {
  return (method === 'GET' || method === 'HEAD') && headers['sec-fetch-mode'] === 'navigate';
}

/** Whether the browser requests a part of a page: a redirect to a cookie would be refused as a request of that page. */
export function isPartOfPage({ headers }: IncomingMessage): boolean {
  const mode = headers['sec-fetch-mode'];
  return mode !== undefined && mode !== 'navigate';
}
