import { existsSync, mkdtempSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestLevel } from '../test-levels.ts';
import type { FileResult, JournalEntry } from './journal.ts';
import { parseJournal } from './journal.ts';
import type { Trouble } from './judge.ts';
import { endedBadly, troublesOf } from './judge.ts';
import type { Ended } from './run-command.ts';
import { runCommand } from './run-command.ts';

/** Number of last lines of a command's output that show why it failed. */
const LAST_LINES = 20;

export class LevelRun {
  readonly level: TestLevel;
  readonly logFile: string;
  readonly #journalFile: string;
  readonly #startedAt = performance.now();

  constructor(level: TestLevel, directory: string) {
    this.level = level;
    const own = mkdtempSync(join(directory, `${level.name}-`));
    this.logFile = join(own, 'log');
    this.#journalFile = join(own, 'journal');
  }

  /** Runs all of the level, or one file of it. */
  async run(file: string | null): Promise<{ ended: Ended; troubles: Trouble[] }> {
    const { command, again, company, limitMinutes } = this.level;
    const ended = await runCommand(file === null ? command : [...command, file], {
      logFile: this.logFile,
      environment: again === 'files' ? { TEST_JOURNAL: this.#journalFile } : {},
      limitMs: limitMinutes * 60_000,
      background: company === 'background',
    });
    return {
      ended,
      troubles: again === 'files' ? troublesOf(this.#journal, ended) : this.#troubleOf(ended),
    };
  }

  get said(): string {
    return existsSync(this.logFile) ? readFileSync(this.logFile, 'utf8') : '';
  }

  get files(): FileResult[] {
    return this.#journal.flatMap((entry) => (entry.kind === 'ended' ? [entry] : []));
  }

  /** Returns its progress in a few words. */
  get progress(): string {
    const meant = this.#journal.flatMap((entry) => (entry.kind === 'meant' ? entry.files : [])).length;
    const failed = this.files.filter(({ failures }) => failures.length > 0).length;
    const seconds = `${Math.round((performance.now() - this.#startedAt) / 1000)} s`;
    const files = meant === 0 ? '' : `, ${this.files.length} of ${meant} files`;
    return `${this.level.name} ${seconds}${files}${failed === 0 ? '' : `, ${failed} failed`}`;
  }

  get #journal(): JournalEntry[] {
    return existsSync(this.#journalFile) ? parseJournal(readFileSync(this.#journalFile, 'utf8')) : [];
  }

  #troubleOf(ended: Ended): Trouble[] {
    const bad = endedBadly(ended);
    if (bad === undefined) return [];
    const last = this.said.trimEnd().split('\n').slice(-LAST_LINES);
    return [{ file: null, failures: [{ test: null, message: [bad, ...last].join('\n') }] }];
  }
}
