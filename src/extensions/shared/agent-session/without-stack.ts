/**
 * Makes an error that does not say where it was made. For one that every connection has at its end and hardly anybody
 * sees: to walk the stack takes longer than all else that closing does.
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
