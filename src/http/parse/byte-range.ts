/** The range that a `Range` header asks for. Several ranges, or an invalid range, count as none: the whole is then sent. */
export type ByteRange =
  | { readonly kind: 'from'; readonly first: number; readonly last: number | null }
  | { readonly kind: 'suffix'; readonly length: number };

export function parseRange(header: string | undefined): ByteRange | null {
  const match = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(header?.trim() ?? '');
  if (!match) return null;
  const [, first = '', last = ''] = match;
  if (first === '') return last === '' ? null : { kind: 'suffix', length: Number(last) };
  if (last !== '' && Number(last) < Number(first)) return null;
  return { kind: 'from', first: Number(first), last: last === '' ? null : Number(last) };
}
