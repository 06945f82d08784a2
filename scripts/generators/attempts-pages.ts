/** Writes the list of attempts by level: all of it on a page of its own, and in numbers where the levels are explained. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ALL_ATTEMPTS } from '../../tests/security/attempts/all-attempts.ts';
import type { Attempt, AttemptClass, Expected, Setting } from '../../tests/security/attempts/attempt.ts';
import { EXPECTED, expectedOf, SETTINGS } from '../../tests/security/attempts/attempt.ts';
import type { Generator } from './generator.ts';
import { page, table } from './generator.ts';

const EXPLANATION = 'docs/explanation/isolation.md';
const SOURCE = 'tests/security/attempts/';
const BEGIN = `<!-- Written by \`npm run generate\` from ${SOURCE}, to the end of the table. -->`;
const END = '<!-- End of what is written. -->';
const NOT_RUN = 'not run here';

const settings = Object.keys(SETTINGS) as Setting[];
const words = Object.keys(EXPECTED) as Expected[];
const total = ALL_ATTEMPTS.reduce((sum, { attempts }) => sum + attempts.length, 0);

const headings = settings.map((setting) => {
  const { level, backend, who } = SETTINGS[setting];
  return `\`${level}\`: ${backend}, ${who}`;
});

/** Returns `held`, or the number of each result. */
function summary(of: AttemptClass, setting: Setting): string {
  const all = of.attempts.map((attempt) => expectedOf(of, attempt, setting));
  const counted = words
    .map((word) => ({ word, count: all.filter((expected) => expected === word).length }))
    .filter(({ count }) => count > 0);
  return counted.length === 1
    ? (counted[0]?.word ?? '')
    : counted.map(({ word, count }) => `${count} ${word}`).join(', ');
}

function summaryTable(): string {
  const rows = ALL_ATTEMPTS.map((of) => [
    of.title,
    String(of.attempts.length),
    ...settings.map((setting) => summary(of, setting)),
    NOT_RUN,
    NOT_RUN,
  ]);
  return table(['what is tried', 'attempts', ...headings, '`gvisor`', '`microvm`'], rows);
}

function meanings(): string {
  return words.map((word) => `- **${word}**: ${EXPECTED[word]}.`).join('\n');
}

/** Groups attempts with equal results into one row. */
function groups(of: AttemptClass): string[][] {
  const found = new Map<string, Attempt[]>();
  for (const attempt of of.attempts) {
    const key = settings.map((setting) => expectedOf(of, attempt, setting)).join(' ');
    found.set(key, [...(found.get(key) ?? []), attempt]);
  }
  return [...found].map(([key, attempts]) => [
    attempts.map(({ what }) => what).join('; '),
    String(attempts.length),
    ...key.split(' '),
  ]);
}

export const attemptsPage: Generator = {
  file: 'docs/reference/attempts.md',
  render: () =>
    page(
      SOURCE,
      '# What is tried against the wall',
      `${total} attempts, each made in a sandbox of every kind below by \`tests/security/attempts-*.test.ts\`, which compare what came of it with this page. [What a sandbox holds back](../explanation/isolation.md) explains the levels.`,
      meanings(),
      'Of `gvisor` and `microvm` nothing is said: no runtime that offers them was at hand (`sandboxer doctor` tells whether yours does).',
      ...ALL_ATTEMPTS.flatMap((of) => [
        `## ${of.title}`,
        `What for: ${of.why}.`,
        table(['attempts', 'number', ...headings], groups(of)),
      ]),
    ),
};

export const attemptsSummary: Generator = {
  file: EXPLANATION,
  render() {
    const text = readFileSync(join(import.meta.dirname, '..', '..', EXPLANATION), 'utf8');
    const [begin, end] = [text.indexOf(BEGIN), text.indexOf(END)];
    if (begin < 0 || end < begin)
      throw new Error(`${EXPLANATION} has no place for the table: ${BEGIN} … ${END}`);
    const made = [`${total} attempts.`, summaryTable(), meanings()].join('\n\n');
    return `${text.slice(0, begin)}${BEGIN}\n\n${made}\n\n${text.slice(end)}`;
  },
};
