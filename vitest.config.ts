import { defineConfig } from 'vitest/config';
import { LongestFirst } from './scripts/longest-first.ts';
import { vitestLevels } from './scripts/test-levels.ts';

export default defineConfig({
  test: {
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
