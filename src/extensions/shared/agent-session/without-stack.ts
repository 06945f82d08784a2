/**
 * Makes an error without a stack, for one that every connection has at its end and hardly any caller reads: to walk the stack
 * takes longer than the rest of a close.
 */
export function withoutStack<E extends Error>(make: () => E): E {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  try {
    return make();
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}
