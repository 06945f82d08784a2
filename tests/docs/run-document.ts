import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { join, resolve } from 'node:path';
import { outputMatches } from './expected-output.ts';
import type { FencedBlock } from './fenced-blocks.ts';
import { fencedBlocks } from './fenced-blocks.ts';

export const ROOT = resolve(import.meta.dirname, '../..');
const RUNNABLE = new Set(['sh', 'ts']);
const TIME_LIMIT_MS = 170_000;

/** What a block may need of the machine: `needs=local` in its fence. A block whose need is not met is left out. */
export type Need = 'local' | 'compose';

export interface Surroundings {
  /** Where the scripts are kept and what they print. */
  readonly directory: string;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly has?: ReadonlySet<Need>;
}

interface Step {
  readonly block: FencedBlock;
  /** The output that is shown right below. */
  readonly shown: string | null;
}

export function runnableBlocks(markdown: string): FencedBlock[] {
  return fencedBlocks(markdown).filter(({ language }) => RUNNABLE.has(language));
}

/** The needs of all blocks of a document. */
export function needsOf(markdown: string): Set<Need> {
  const needs = runnableBlocks(markdown).map(({ attributes }) => attributes.needs as Need | undefined);
  return new Set(needs.filter((need) => need !== undefined));
}

/** Lines of the `text` and `console` blocks that are not the output of a block that runs: nothing checks them. */
export function uncheckedLines(markdown: string): number[] {
  const blocks = fencedBlocks(markdown);
  const isChecked = ({ follows }: FencedBlock, index: number) =>
    follows && RUNNABLE.has(blocks[index - 1]?.language ?? '');
  return blocks
    .filter((block, index) => ['text', 'console'].includes(block.language) && !isChecked(block, index))
    .map(({ line }) => line);
}

function stepsOf(markdown: string, has: ReadonlySet<Need>): Step[] {
  const blocks = fencedBlocks(markdown);
  return blocks.flatMap((block, index) => {
    const { needs } = block.attributes;
    if (!RUNNABLE.has(block.language) || (needs !== undefined && !has.has(needs as Need))) return [];
    const next = blocks[index + 1];
    return [{ block, shown: next?.language === 'text' && next.follows ? next.text : null }];
  });
}

const PORTS = ['8400', '8080', '9000'] as const;

async function freePort(): Promise<string> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  return String(port);
}

/** The ports that documents like to name may be taken here. */
async function withFreePorts(markdown: string): Promise<string> {
  let text = markdown;
  for (const port of PORTS) {
    if (text.includes(port)) text = text.replaceAll(new RegExp(`\\b${port}\\b`, 'g'), await freePort());
  }
  return text;
}

/** The package by its own name is only to be had once it is built and installed. */
function withSources(text: string): string {
  return text.replaceAll(/(['"])sand-boxer\/(\w+)\1/g, (_all, quote, room) => {
    const file = room === 'extension' ? 'core/extension.ts' : `${room}/index.ts`;
    return `${quote}${join(ROOT, 'src', file)}${quote}`;
  });
}

/** One shell for the whole document, so that variables and directories carry over. The first failure ends it. */
function scriptOf(steps: readonly Step[], directory: string): string {
  const parts = steps.map(({ block }, index) => {
    const name = (kind: string) => join(directory, `${index}.${kind}`);
    const isShell = block.language === 'sh';
    const source = name(isShell ? 'sh' : 'ts');
    writeFileSync(source, `${isShell ? block.text : withSources(block.text)}\n`);
    const command = isShell
      ? `source '${source}'`
      : `"$DOCS_NODE" --disable-warning=ExperimentalWarning '${source}'`;
    const tolerant = 'exit' in block.attributes;
    return [
      ...(block.attributes.in === 'clone' ? [`cd '${ROOT}'`] : []),
      tolerant ? 'trap - ERR' : `trap 'echo "$BASH_COMMAND" >> "${name('failed')}"' ERR`,
      `{ ${command}; } > '${name('out')}' 2>&1`,
      `echo $? > '${name('status')}'`,
      `if [ -s '${name('failed')}' ]; then exit 1; fi`,
    ].join('\n');
  });
  return `set -E\n${parts.join('\n')}\n`;
}

async function runShell(script: string, { cwd, env }: Surroundings): Promise<void> {
  const child = spawn('bash', ['--norc', '--noprofile', script], {
    cwd,
    env: { ...env },
    stdio: 'ignore',
    detached: true,
  });
  const timer = setTimeout(() => process.kill(-(child.pid as number), 'SIGKILL'), TIME_LIMIT_MS);
  await new Promise((done) => child.once('exit', done));
  clearTimeout(timer);
  try {
    // What a document left in the background is its own, and ends with it.
    process.kill(-(child.pid as number), 'SIGTERM');
  } catch {
    // There was nothing left.
  }
}

function read(file: string): string | null {
  return existsSync(file) ? readFileSync(file, 'utf8') : null;
}

/** What is wrong with a step, or null. */
function faultOf({ block, shown }: Step, directory: string, index: number): string | null {
  const file = (kind: string) => join(directory, `${index}.${kind}`);
  const status = read(file('status'))?.trim() ?? 'none';
  const output = read(file('out')) ?? '';
  const failed = read(file('failed'));
  const at = `line ${block.line}:\n${block.text}\n`;
  if (failed !== null) return `${at}--- failed: ${failed.trim()}\n${output}`;
  const expected = block.attributes.exit ?? '0';
  if (status !== expected) return `${at}--- ended with ${status}, not ${expected}:\n${output}`;
  if (shown === null || outputMatches(shown, output)) return null;
  return `${at}--- printed:\n${output}--- but the document shows:\n${shown}\n`;
}

/** Runs every block of a document in order; throws at the first that does not do what the document says. */
export async function runDocument(file: string, surroundings: Surroundings): Promise<void> {
  const { directory, has = new Set() } = surroundings;
  mkdirSync(directory, { recursive: true });
  const steps = stepsOf(await withFreePorts(readFileSync(join(ROOT, file), 'utf8')), has);
  const script = join(directory, 'all.sh');
  writeFileSync(script, scriptOf(steps, directory));
  await runShell(script, surroundings);
  for (const [index, step] of steps.entries()) {
    const fault = faultOf(step, directory, index);
    if (fault !== null) throw new Error(`${file}, ${fault}`);
  }
}
