import type { EgressRule, NetworkPolicy } from '../../contract/profiles/profile.ts';

/**
 * The first reason why `wanted` reaches further than `given`; `null` when it does not. A credential goes only where
 * `given` sends it, unless it is one of `own`: the secrets that the request brought along.
 */
export function wideningOf(
  given: NetworkPolicy,
  wanted: NetworkPolicy,
  own: ReadonlySet<string>,
): string | null {
  if (given.default === 'deny' && wanted.default === 'allow') return 'it opens the network';
  for (const rule of wanted.egress) {
    const covering = given.egress.filter((candidate) => covers(candidate, rule));
    if (given.default === 'deny' && covering.length === 0) return `it adds ${rule.host}:${rule.port}`;
    const { credential } = rule;
    if (credential === undefined || own.has(credential)) continue;
    if (!covering.some((candidate) => candidate.credential === credential)) {
      return `it sends the credential ${credential} to ${rule.host}:${rule.port}`;
    }
  }
  return null;
}

function covers(given: EgressRule, wanted: EgressRule): boolean {
  return (
    coversHost(given.host, wanted.host) &&
    given.port === wanted.port &&
    coversList(given.methods, wanted.methods) &&
    coversList(given.paths, wanted.paths) &&
    coversList(given.binaries, wanted.binaries)
  );
}

/** `*.example.org` stands for exactly one label. */
function coversHost(given: string, wanted: string): boolean {
  if (given === wanted) return true;
  if (!given.startsWith('*.') || wanted.startsWith('*')) return false;
  const dot = wanted.indexOf('.');
  return dot > 0 && wanted.slice(dot) === given.slice(1);
}

/** No list means anything. An empty one is left to whoever enforces it, so it is equal only to itself. */
function coversList(given: readonly string[] | undefined, wanted: readonly string[] | undefined): boolean {
  if (given === undefined) return true;
  if (wanted === undefined || (wanted.length === 0 && given.length > 0)) return false;
  return wanted.every((item) => given.includes(item));
}
