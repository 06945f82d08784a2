import { setFlagsFromString } from 'node:v8';

/** The versions of V8 that are known to have these; another one would complain aloud. */
const KNOWN = /^1[23]\./;
const FLAGS = ['--invocation-count-for-maglev=60', '--minimum-invocations-after-ic-update=60'];

/**
 * V8 waits for hundreds of calls before it makes anything faster. A server that is asked now and then would be slow for its
 * first hour: it is told to begin after a minute of use.
 */
export function tierUpEarly(): void {
  if (!KNOWN.test(process.versions.v8)) return;
  for (const flag of FLAGS) setFlagsFromString(flag);
}
