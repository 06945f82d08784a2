const NAME = 'sandboxer_preview';
/** A browser takes this one from exactly one host, over https, and lets no other host plant it. */
const HOST_NAME = `__Host-${NAME}`;
const OURS: ReadonlySet<string> = new Set([NAME, HOST_NAME]);

function nameOf(cookie: string): string {
  return (cookie.split('=', 1)[0] as string).trim();
}

function parts(header: string | undefined): string[] {
  return (header ?? '')
    .split(';')
    .map((part) => part.trim())
    .filter((part) => part !== '');
}

/** The key to one preview, as its visitor’s browser keeps it. */
export class PreviewCookie {
  readonly #secure: boolean;
  readonly #name: string;

  /** `secure`: previews are reached over https. */
  constructor(secure: boolean) {
    this.#secure = secure;
    this.#name = secure ? HOST_NAME : NAME;
  }

  /** Returns every value under our name: a page of another preview may have planted one next to ours. */
  tokens(header: string | undefined): string[] {
    return parts(header)
      .filter((part) => nameOf(part) === this.#name)
      .map((part) => part.slice(part.indexOf('=') + 1));
  }

  /** Returns the text for `Set-Cookie`: for this host alone, and out of reach for the page. */
  keep(token: string, seconds: number): string {
    const secure = this.#secure ? '; Secure' : '';
    return `${this.#name}=${token}; Path=/; HttpOnly; SameSite=Lax; Max-Age=${seconds}${secure}`;
  }
}

/** The cookies of the service inside. */
export function withoutOurs(header: string | undefined): string {
  return parts(header)
    .filter((part) => !OURS.has(nameOf(part)))
    .join('; ');
}

/**
 * Returns the cookies that the service inside may set: none under our name, and none for a whole domain, which would reach the
 * previews of other sandboxes.
 */
export function cookiesOfService(cookies: readonly string[]): string[] {
  return cookies
    .filter((cookie) => !OURS.has(nameOf(cookie.split(';', 1)[0] as string)))
    .map((cookie) => {
      const [pair, ...attributes] = cookie.split(';');
      return [pair, ...attributes.filter((part) => !/^\s*domain\s*(?:=|$)/i.test(part))].join(';');
    });
}
