/** Reads the package sources of this machine, in the two forms of apt. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export interface DebianSources {
  /** Lines of a `sources.list`. */
  readonly lines: readonly string[];
  /** Paragraphs of a `.sources` file. */
  readonly paragraphs: readonly string[];
}

/**
 * Returns whether a suite belongs to another: `bookworm` has `bookworm-updates`, `bookworm-security` and, before 2021,
 * `buster/updates`.
 */
function belongsTo(suite: string, one: string): boolean {
  return one === suite || one.startsWith(`${suite}-`) || one.startsWith(`${suite}/`);
}

/** Tests for a password in an address: every user of the image could read it. */
const hasPassword = (text: string) => /:\/\/[^/\s]*@/.test(text);

function lineIsFor(suite: string, line: string): boolean {
  const [, one = ''] = /^\s*deb\s+(?:\[[^\]]*\]\s+)?\S+\s+(\S+)/.exec(line) ?? [];
  return belongsTo(suite, one);
}

function paragraphIsFor(suite: string, paragraph: string): boolean {
  const field = (name: string) =>
    new RegExp(`^${name}:([^\\n]*)`, 'im').exec(paragraph)?.[1]?.trim().split(/\s+/) ?? [];
  const enabled = field('Enabled')[0]?.toLowerCase() !== 'no';
  return enabled && field('Types').includes('deb') && field('Suites').some((one) => belongsTo(suite, one));
}

function filesOf(directory: string): string[] {
  const more = join(directory, 'sources.list.d');
  const names = (() => {
    try {
      return readdirSync(more).sort();
    } catch {
      return [];
    }
  })();
  return [join(directory, 'sources.list'), ...names.map((name) => join(more, name))];
}

/** Returns the machine's apt sources of a suite; none where it has another suite. */
export function debianSources(suite: string, directory = '/etc/apt'): DebianSources {
  const lines: string[] = [];
  const paragraphs: string[] = [];
  for (const path of filesOf(directory)) {
    let text: string;
    try {
      text = readFileSync(path, 'utf8').replaceAll(/^\s*#.*\n?/gm, '');
    } catch {
      continue;
    }
    if (path.endsWith('.list')) lines.push(...text.split('\n').filter((line) => lineIsFor(suite, line)));
    if (path.endsWith('.sources'))
      paragraphs.push(...text.split(/\n\s*\n/).filter((one) => paragraphIsFor(suite, one)));
  }
  return {
    lines: lines.filter((line) => !hasPassword(line)),
    paragraphs: paragraphs.filter((one) => !hasPassword(one)).map((one) => one.trim()),
  };
}
