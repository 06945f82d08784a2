/** Every documented option of every command, against a real server; options of all commands are tried beside. */
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { GLOBAL_GROUP } from '../../../src/cli/invocation/global-options.ts';
import type { LeafCommand } from '../../../src/cli/leaf-commands.ts';
import { leafCommands } from '../../../src/cli/leaf-commands.ts';
import type { Outcome } from '../cli-world.ts';
import { CliWorld, outcomeOf } from '../cli-world.ts';
import type { FlagCall } from './flag-calls.ts';
import { FLAG_CALLS, FLAG_FILES } from './flag-calls.ts';
import { imageArchive } from './image-archive.ts';

const leaves = await leafCommands();
const told = new Map<string, Record<string, unknown>>();
const federation = mkdtempSync(join(tmpdir(), 'sbx-federation-'));
let world: CliWorld;
let hasLocal = false;

beforeAll(async () => {
  world = await CliWorld.open({
    env: { SANDBOXER_LOCAL: '1', SANDBOXER_SECRET_FLAGGED: 'a-secret' },
    config: {
      webhooks: { allow_private: true },
      hosts: { local: { labels: { region: 'eu' } } },
      reuse_surface: { directory: federation },
      extensions: { compose_ssh: { enabled: true } },
    },
  });
  const files = { ...FLAG_FILES, 'image.tar': imageArchive(), 'vendor.key': world.stub.key };
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(world.cwd, name)), { recursive: true });
    writeFileSync(join(world.cwd, name), content);
  }
  const { items } = await world.json<{ items: { id: string; health: { status: string } }[] }>([
    'extensions',
    'list',
  ]);
  hasLocal = items.some(({ id, health }) => id === 'ext.local' && health.status === 'healthy');
});
afterAll(async () => {
  await world.close();
  rmSync(federation, { recursive: true });
});

function commandOf(line: string): LeafCommand {
  const found = leaves.filter(({ name }) => `${line} `.startsWith(`${name} `));
  const [longest] = found.sort((a, b) => b.name.length - a.name.length);
  if (longest === undefined) throw new Error(`no command begins "${line}"`);
  return longest;
}

/** Exit codes of an interrupt: of its own doing, as a shell tells it, and of the signal. */
const INTERRUPTED = [0, 130, null];

/** Never answered: only which words a line has is asked. */
const NOTHING = new Map<string, Record<string, unknown>>();

function lineOf({ line }: FlagCall, answers = NOTHING): string {
  return typeof line === 'function' ? line(answers) : line;
}

/** Words of ours: those behind `--` are a program's. */
function ownWords(line: string): readonly string[] {
  return (line.split(' -- ')[0] as string).split(' ');
}

async function outcome({ endless, input = '' }: FlagCall, args: readonly string[]): Promise<Outcome> {
  if (!endless) return world.run(args, { input });
  const child = world.start(args);
  const ended = outcomeOf(child);
  await Promise.race([once(child.stdout as NodeJS.ReadableStream, 'data'), ended]);
  child.kill('SIGINT');
  return ended;
}

describe('options', () => {
  it('every documented option of every command is in a call', () => {
    const used = new Map<string, Set<string>>();
    for (const call of FLAG_CALLS) {
      const line = lineOf(call);
      const { name } = commandOf(line);
      used.set(name, new Set([...(used.get(name) ?? []), ...ownWords(line)]));
    }
    const untried = leaves.flatMap(({ name, command }) =>
      command.options
        .filter(({ hidden, helpGroupHeading }) => !hidden && helpGroupHeading !== GLOBAL_GROUP)
        .filter(({ long, short }) => ![long, short].some((flag) => used.get(name)?.has(flag ?? '')))
        .map(({ flags }) => `${name} ${flags}`),
    );
    expect(untried).toEqual([]);
  });

  it.for(FLAG_CALLS.map((call) => [lineOf(call), call] as const))(
    '%s',
    { timeout: 60_000 },
    async ([, call], { skip }) => {
      skip(call.needsLocal === true && !hasLocal, 'ext.local does not work on this machine');
      const line = lineOf(call, told);
      const words = line.split(' ').map((word) => word.replaceAll('␣', ' '));
      const done = await outcome(call, ['--json', ...words]);
      const shown = `${done.stdout}\n${done.stderr}`;
      expect(call.endless ? INTERRUPTED : [call.code ?? 0], shown).toContain(done.code);
      const lines = done.stdout.trimEnd().split('\n');
      const [document = {}] = lines.map((text) => JSON.parse(text) as Record<string, unknown>);
      if (call.error !== undefined)
        expect(JSON.parse(lines.at(-1) ?? ''), shown).toMatchObject({ error: { code: call.error } });
      if (call.shows !== undefined) expect(document, shown).toMatchObject(expected(call.shows));
      if (call.error === undefined) told.set(commandOf(line).name, document);
    },
  );
});

/** Patterns stand for any text that they match. */
function expected(shows: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const entries = Object.entries(shows).map(([name, value]) => [
    name,
    value instanceof RegExp ? expect.stringMatching(value) : value,
  ]);
  return Object.fromEntries(entries) as Record<string, unknown>;
}
