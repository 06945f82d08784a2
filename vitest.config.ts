import { defineConfig } from 'vitest/config';
import { LongestFirst } from './scripts/longest-first.ts';
import { vitestLevels } from './scripts/test-levels.ts';
import { VitestJournal } from './scripts/test-run/vitest-journal.ts';

// For this process alone: what the tests start is not told of it.
const journal = process.env.TEST_JOURNAL;
delete process.env.TEST_JOURNAL;

export default defineConfig({
  test: {
    ...(journal === undefined ? {} : { reporters: ['default', new VitestJournal(journal)] }),
    sequence: { sequencer: LongestFirst },
    projects: vitestLevels.map(({ name, include, exclude, testTimeoutMs }) => ({
      test: {
        name,
        include: [...include],
        exclude: ['**/node_modules/**', '**/dist/**', ...exclude],
        testTimeout: testTimeoutMs,
        hookTimeout: testTimeoutMs,
      },
    })),
  },
});
