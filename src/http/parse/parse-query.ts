import { SandboxerError } from '../../contract/errors/errors.ts';

const MOST_PARAMETERS = 200;

function decode(text: string): string {
  const spaced = text.includes('+') ? text.replaceAll('+', ' ') : text;
  if (!spaced.includes('%')) return spaced;
  let decoded: string;
  try {
    decoded = decodeURIComponent(spaced);
  } catch {
    throw new SandboxerError('SBX_INVALID_REQUEST', 'The query is not valid percent-encoded UTF-8.');
  }
  if (decoded.includes('\0'))
    throw new SandboxerError('SBX_INVALID_REQUEST', 'The query cannot hold a NUL character.');
  return decoded;
}

/** Names to values; a name that is repeated has a list of them. */
export function parseQuery(url: string): Record<string, string | string[]> {
  const query: Record<string, string | string[]> = Object.create(null);
  const start = url.indexOf('?');
  if (start < 0) return query;
  const pairs = url.slice(start + 1).split('&', MOST_PARAMETERS + 1);
  if (pairs.length > MOST_PARAMETERS)
    throw new SandboxerError('SBX_INVALID_REQUEST', 'The query has too many parameters.');
  for (const pair of pairs) {
    if (pair === '') continue;
    const equals = pair.indexOf('=');
    const name = decode(equals < 0 ? pair : pair.slice(0, equals));
    const value = equals < 0 ? '' : decode(pair.slice(equals + 1));
    const known = query[name];
    if (known === undefined) query[name] = value;
    else if (Array.isArray(known)) known.push(value);
    else query[name] = [known, value];
  }
  return query;
}
