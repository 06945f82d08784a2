import type { FaultRule, StubReply } from '../wire/protocol.ts';

/**
 * Outcome of a request at the stub. The effect is done in every case: `dropped` cuts the connection, `hung` leaves it open and
 * silent, `wait` requires a `check` of the request when the object changes or at `until`.
 */
export type StubOutcome = (
  | { readonly kind: 'reply'; readonly reply: StubReply }
  | { readonly kind: 'dropped' }
  | { readonly kind: 'hung' }
  | { readonly kind: 'wait'; readonly until: number }
) & { readonly delayMs?: number };

export function reply(status: number, body: unknown): StubOutcome {
  return { kind: 'reply', reply: { status, headers: {}, body } };
}

export function errorReply(
  status: number,
  code: string,
  message: string,
  statement: { created?: boolean; retryAfterSeconds?: number } = {},
): StubOutcome {
  const { created, retryAfterSeconds } = statement;
  const headers = retryAfterSeconds === undefined ? {} : { 'retry-after': String(retryAfterSeconds) };
  const error = { code, message, ...(created === undefined ? {} : { created }) };
  return { kind: 'reply', reply: { status, headers, body: { error } } };
}

/** Returns a 500 that says whether the object exists only when its rule has that. */
export function statedError(rule: FaultRule, created: boolean): StubOutcome {
  return errorReply(
    500,
    'internal',
    'The stub was told to fail.',
    rule.params.says === true ? { created } : {},
  );
}

export function droppedOf(rule: FaultRule): StubOutcome {
  return { kind: rule.params.hang === true ? 'hung' : 'dropped' };
}
