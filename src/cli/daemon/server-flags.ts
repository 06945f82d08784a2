/**
 * Flags of the Node.js that runs a server. Its short-lived objects get less room than V8 would let them grow into: a server that
 * is used for a while then stays as small as it began (40 MB less), for a collection that is due twice as often.
 */
export const SERVER_FLAGS = ['--disable-warning=ExperimentalWarning', '--max-semi-space-size=8'] as const;
