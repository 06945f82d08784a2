import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { KEY_SCOPES } from '../../../src/cli/commands/account/keys.ts';
import { GLOBAL_GROUP } from '../../../src/cli/invocation/global-options.ts';
import { leafCommands } from '../../../src/cli/leaf-commands.ts';
import type { Outcome } from '../cli-world.ts';
import { CliWorld, outcomeOf } from '../cli-world.ts';
import type { CommandCall } from './calls.ts';
import { CALLS, FILES, STUB_KEY } from './calls.ts';
import { imageArchive } from './image-archive.ts';

const ROOT = resolve(import.meta.dirname, '../../..');
const AT_ONCE = 4;

const leaves = await leafCommands();
const answers = new Map<string, Record<string, unknown>>();
const federation = mkdtempSync(join(tmpdir(), 'sbx-federation-'));
let world: CliWorld;
let hasLocal = false;
/** Options that every command has, behind its name: none of them may reach a request. */
const GLOBAL = ['--json', '--workspace', 'default', '--quiet', '--no-color'];

beforeAll(async () => {
  world = await CliWorld.open({
    env: { SANDBOXER_LOCAL: '1' },
    config: {
      webhooks: { allow_private: true },
      reuse_surface: { directory: federation },
      extensions: { compose_ssh: { enabled: true } },
    },
  });
  const prices = readFileSync(join(ROOT, 'registry/prices/e2b.yaml'), 'utf8');
  for (const [name, text] of Object.entries({
    ...FILES,
    'e2b.yaml': prices,
    'image.tar': imageArchive(),
  })) {
    mkdirSync(dirname(join(world.cwd, name)), { recursive: true });
    writeFileSync(join(world.cwd, name), text);
  }
  const { items } = await world.json<{ items: { id: string; health: { status: string } }[] }>([
    'extensions',
    'list',
  ]);
  hasLocal = items.some(({ id, health }) => id === 'ext.local' && health.status === 'healthy');
  const scopes = KEY_SCOPES.flatMap((scope) => ['--scope', scope]);
  const { secret: key } = await world.json<{ secret: string }>([
    'keys',
    'create',
    'all',
    '--actor',
    'adm',
    ...scopes,
  ]);
  GLOBAL.push('--url', `unix:${join(world.stateDir, 'sandboxer.sock')}`, '--key', key);
});
afterAll(async () => {
  await world.close();
  rmSync(federation, { recursive: true });
});

function wordsOf(args: CommandCall['args']): readonly string[] {
  return typeof args === 'function' ? args(answers) : args;
}

/** Every line of it is a document; nothing else is there. */
function documentsIn(text: string): Record<string, unknown>[] {
  expect(text).toMatch(/\n$/);
  return text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}

function expectError({ stdout, stderr }: Outcome, name: string): Record<string, unknown> {
  expect(stderr, name).toBe('');
  const [document, ...more] = documentsIn(stdout);
  expect(more, name).toEqual([]);
  const error = document?.error as Record<string, unknown>;
  expect(error, name).toMatchObject({
    type: expect.stringMatching(/^urn:sand-boxer:error:SBX_/),
    detail: expect.stringMatching(/\S/),
    code: expect.stringMatching(/^SBX_/),
    remedy: expect.stringMatching(/\S/),
    retryable: expect.any(Boolean),
  });
  return error;
}

async function inBatches<T>(items: readonly T[], act: (item: T) => Promise<void>): Promise<void> {
  const rest = [...items];
  const worker = async () => {
    for (let item = rest.shift(); item !== undefined; item = rest.shift()) await act(item);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
}

async function interrupted(args: readonly string[]): Promise<Outcome> {
  const child = world.start(args);
  const outcome = outcomeOf(child);
  await once(child.stdout as NodeJS.ReadableStream, 'data');
  child.kill('SIGINT');
  return outcome;
}

describe('the table of calls', () => {
  it('the table of calls has every command, and no other', () => {
    expect(Object.keys(CALLS).sort()).toEqual(leaves.map(({ name }) => name).sort());
  });

  it('the table of calls gives every command all options that every command has', () => {
    const given = GLOBAL.filter((word) => word.startsWith('--')).sort();
    for (const { name, command } of leaves) {
      const global = command.options.filter(({ helpGroupHeading }) => helpGroupHeading === GLOBAL_GROUP);
      expect(global.map(({ long }) => long).sort(), name).toEqual(given);
    }
  });
});

describe('failures with --json', () => {
  const runs = Object.entries(CALLS);
  const isLast = ([name]: (typeof runs)[number]) => name === 'daemon restart' || name === 'daemon stop';

  const answersWithJson = async (name: string, call: CommandCall) => {
    const global = call.local ? GLOBAL.slice(0, GLOBAL.indexOf('--url')) : GLOBAL;
    const args = [...name.split(' '), ...global, ...wordsOf(call.args)];
    const input = (call.input ?? '').replace(STUB_KEY, world.stub.key);
    const outcome = call.endless ? await interrupted(args) : await world.run(args, { input });
    expect(outcome, JSON.stringify(outcome)).toMatchObject({ code: call.code ?? 0, stderr: '' });
    const documents = documentsIn(outcome.stdout);
    if (!call.lines) expect(documents).toHaveLength(1);
    answers.set(name, documents[0] ?? {});
  };

  it.for(runs.filter((run) => !isLast(run)))('%s answers with JSON alone', async ([name, call], { skip }) => {
    const reason = call.skip?.({ hasLocal });
    skip(reason !== undefined, reason);
    await answersWithJson(name, call);
  });

  it('a failed command prints JSON, with the exit code of its kind', async () => {
    const failing = runs.filter(([, { fails }]) => fails !== undefined);
    await inBatches(failing, async ([name, { fails }]) => {
      const { args = [], code, error } = fails ?? {};
      const failed = await world.run(['--json', ...name.split(' '), ...wordsOf(args)]);
      expect(expectError(failed, name), name).toMatchObject({ code: error });
      expect(failed.code, name).toBe(code);
    });
  });

  it.for(runs.filter(isLast))('%s answers with JSON alone', async ([name, call], { skip }) => {
    const reason = call.skip?.({ hasLocal });
    skip(reason !== undefined, reason);
    await answersWithJson(name, call);
  });
});
