type QueryValue = string | number | boolean | readonly string[] | null | undefined;
export type Query = Readonly<Record<string, QueryValue>>;

/** A query string with its `?`, or nothing. A list becomes a repeated parameter; what is absent is left out. */
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

/** `/v1/…` from segments that may hold anything. */
export function pathOf(...segments: readonly (string | number)[]): string {
  return `/v1/${segments.map((segment) => encodeURIComponent(segment)).join('/')}`;
}
