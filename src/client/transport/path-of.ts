type QueryValue = string | number | boolean | readonly string[] | null | undefined;
export type Query = Readonly<Record<string, QueryValue>>;

/** Returns a query string with its `?`, or the empty string. A list becomes a repeated parameter; absent values are left out. */
export function queryOf(query: Query): string {
  let text = '';
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined || value === null) continue;
    for (const one of Array.isArray(value) ? value : [value]) {
      text += `${text === '' ? '?' : '&'}${name}=${encodeURIComponent(String(one))}`;
    }
  }
  return text;
}

/** Returns `/v1/…` from segments of any text. */
export function pathOf(...segments: readonly (string | number)[]): string {
  return `/v1/${segments.map((segment) => encodeURIComponent(segment)).join('/')}`;
}
