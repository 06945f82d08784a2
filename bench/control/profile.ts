/** Profile pinned to the in-process backend, which isolates nothing and costs nothing. */
export const BENCH_PROFILE = {
  id: 'profile.stub-bench',
  version: '1.0.0',
  extension: 'ext.memory',
  isolation: { level: 'none' },
  network: { default: 'allow' },
  ttl: { default: '1h', max: '2h' },
};

/**
 * Commits of a create: admission with its plan and first attempt; the handle, with ready and its meter: see
 * docs/explanation/commits.md.
 */
export const COMMITS_PER_CREATE = 2;
