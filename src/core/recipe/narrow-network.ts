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
  const givenRules = given.egress.map(indexed);
  for (const rule of wanted.egress) {
    const covering = givenRules.filter((candidate) => covers(candidate, rule));
    if (given.default === 'deny' && covering.length === 0) return `it adds ${rule.host}:${rule.port}`;
    const { credential } = rule;
    if (credential === undefined || own.has(credential)) continue;
    if (!covering.some((candidate) => candidate.rule.credential === credential)) {
      return `it sends the credential ${credential} to ${rule.host}:${rule.port}`;
    }
  }
  return null;
}

/** A rule with its lists as sets: each is compared with those of up to 256 others. */
interface IndexedRule {
  readonly rule: EgressRule;
  readonly methods: Allowed;
  readonly paths: Allowed;
  readonly binaries: Allowed;
}

type Allowed = ReadonlySet<string> | undefined;

function indexed(rule: EgressRule): IndexedRule {
  const setOf = (list: readonly string[] | undefined): Allowed => list && new Set(list);
  return { rule, methods: setOf(rule.methods), paths: setOf(rule.paths), binaries: setOf(rule.binaries) };
}

function covers({ rule: given, methods, paths, binaries }: IndexedRule, wanted: EgressRule): boolean {
  return (
    coversHost(given.host, wanted.host) &&
    given.port === wanted.port &&
    coversList(methods, wanted.methods) &&
    coversList(paths, wanted.paths) &&
    coversList(binaries, wanted.binaries)
  );
}

/** `*.example.org` stands for exactly one label. */
function coversHost(given: string, wanted: string): boolean {
  if (given === wanted) return true;
  if (!given.startsWith('*.') || wanted.startsWith('*')) return false;
  const dot = wanted.indexOf('.');
  return dot > 0 && wanted.slice(dot) === given.slice(1);
}

/**
 * Whether every wanted item is allowed. No list allows everything. The meaning of an empty list is left to the code that enforces
 * it, so it is equal only to itself.
 */
function coversList(given: Allowed, wanted: readonly string[] | undefined): boolean {
  if (given === undefined) return true;
  if (wanted === undefined || (wanted.length === 0 && given.size > 0)) return false;
  return wanted.every((item) => given.has(item));
}
