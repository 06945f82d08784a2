/**
 * One thing that a program inside tries, as data: the probe performs it, the tests compare what came of it with what is
 * expected here, and `docs/reference/attempts.md` is written from it.
 */

/** Who tries: a level, the backend that gives it, and as whom the program runs inside. */
export const SETTINGS = {
  policy: { level: 'policy', backend: 'ext.ssh', who: 'the user of the host' },
  user: { level: 'container', backend: 'ext.local', who: 'user' },
  root: { level: 'container', backend: 'ext.local', who: 'root inside' },
  rootlessUser: { level: 'container', backend: 'ext.local, rootless', who: 'user' },
  rootlessRoot: { level: 'container', backend: 'ext.local, rootless', who: 'root inside' },
  oneId: { level: 'container', backend: 'ext.local, rootless with one id', who: 'the one user' },
  docker: { level: 'container', backend: 'ext.docker', who: 'user' },
} as const;

export type Setting = keyof typeof SETTINGS;

/** In the words of the table. */
export const EXPECTED = {
  held: 'refused, or the program is killed, or there is nothing of that name inside',
  own: 'succeeds, on what belongs to the sandbox alone',
  told: 'succeeds: the kernel tells it to every process',
  works: 'must succeed: programs need it',
  open: 'not held: the level promises no wall here',
} as const;

export type Expected = keyof typeof EXPECTED;

export interface Attempt {
  readonly what: string;
  /** A line for the probe, or the name of an archive; `{host}` and `{other}` stand for what is offered there. */
  readonly how: string;
  /** Default: that of its class. */
  readonly expect: Partial<Record<Setting, Expected>>;
  /** Default: root in namespaces of its own, without any other wall, gets it; where this says something, that is not asked. */
  readonly withoutWall?: WithoutWall | undefined;
}

/** `is refused`: also to that root; `would do harm`: to the machine, such as by loading modules. */
type WithoutWall = 'is refused' | 'would do harm';

export interface AttemptClass {
  readonly title: string;
  /** What it would be good for to an attacker. */
  readonly why: string;
  /** Of the level `policy`; all above it hold. */
  readonly policy: 'held' | 'open';
  readonly withoutWall?: WithoutWall;
  readonly attempts: readonly Attempt[];
}

/** What the filter of system calls beside Landlock (`agent/rights/confine-calls.c`) holds. */
export const BY_POLICY_FILTER = { policy: 'held' } as const;

type Expectations = Expected | Partial<Record<Setting, Expected>>;
type More = Partial<Pick<Attempt, 'withoutWall'>>;

const CONTAINERS = ['user', 'root', 'rootlessUser', 'rootlessRoot', 'oneId', 'docker'] as const;

/** For all settings of the level `container`. */
export const inContainers = (expected: Expected): Partial<Record<Setting, Expected>> =>
  Object.fromEntries(CONTAINERS.map((setting) => [setting, expected]));

/** For root inside, as whomever the server runs. */
export const forRoot = (expected: Expected): Partial<Record<Setting, Expected>> => ({
  root: expected,
  rootlessRoot: expected,
});

export const everywhere = (expected: Expected): Partial<Record<Setting, Expected>> => ({
  policy: expected,
  ...inContainers(expected),
});

export function attempt(what: string, how: string, expect: Expectations = {}, more: More = {}): Attempt {
  return { what, how, expect: typeof expect === 'string' ? everywhere(expect) : expect, ...more };
}

/** One attempt for each of the words: `read /proc/kcore`. */
export function each(verb: string, words: string, expect: Expectations = {}, more: More = {}): Attempt[] {
  return words
    .trim()
    .split(/\s+/)
    .map((word) => attempt(`${verb} ${word}`, `${verb} ${word}`, expect, more));
}

export function expectedOf({ policy }: AttemptClass, { expect }: Attempt, setting: Setting): Expected {
  return expect[setting] ?? (setting === 'policy' ? policy : 'held');
}
