import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CliWorld } from './cli-world.ts';
import { normalised } from './golden/normalise.ts';
import { inTerminal, SCRIPT_PROGRAM } from './golden/terminal.ts';
import type { Transcript } from './golden/transcripts.ts';
import { TRANSCRIPTS } from './golden/transcripts.ts';

const FOLDER = join(import.meta.dirname, 'golden');
const UPDATES = process.env.UPDATE_GOLDEN === '1';
const hasTerminal = spawnSync(SCRIPT_PROGRAM, ['--version']).status === 0;

/** A world whose backends do not depend on what this machine has. */
async function openWorld(): Promise<{ world: CliWorld; env: Record<string, string> }> {
  const world = await CliWorld.open();
  const file = join(world.directory, 'config.yaml');
  const config = JSON.parse(readFileSync(file, 'utf8'));
  config.extensions.local = { enabled: false };
  writeFileSync(file, JSON.stringify(config));
  const bin = world.folder('bin');
  const command = join(bin, 'sandboxer');
  writeFileSync(
    command,
    `#!/bin/sh\nexec "${process.execPath}" --disable-warning=ExperimentalWarning "${world.main}" "$@"\n`,
  );
  chmodSync(command, 0o755);
  // Goldens are for reading: without colours, which tests beside the source look at.
  return { world, env: { ...world.env, PATH: `${bin}:${world.env.PATH}`, NO_COLOR: '1', LANG: 'C.UTF-8' } };
}

describe.skipIf(!hasTerminal).each([80, 140])('output in a terminal of %i columns', (columns) => {
  let world: CliWorld;
  let env: Record<string, string>;
  let cwd: string;

  beforeAll(async () => {
    ({ world, env } = await openWorld());
    cwd = world.cwd;
    await world.run(['daemon', 'start']);
  });
  afterAll(() => world.close());

  async function shown({ before = [], commands }: Transcript): Promise<string> {
    const options = { columns, cwd, env };
    for (const command of before) await inTerminal(command, options);
    let text = '';
    for (const command of commands) {
      const outcome = await inTerminal(command, options);
      const ending = outcome.code === 0 ? '' : `[exit ${outcome.code}]\n`;
      text += `$ ${command}\n${outcome.text}${ending}\n`;
    }
    return normalised(text, [
      [world.directory, '/tmp/golden'],
      [world.stub.directory, '/tmp/stub'],
    ]);
  }

  it('colours appear where they are seen and wanted, and nowhere else', async () => {
    const { NO_COLOR: _, ...colourful } = env;
    const shown = async (command: string, more: Record<string, string> = {}) =>
      (await inTerminal(command, { columns, cwd, env: { ...colourful, ...more } })).text;
    expect(await shown('sandboxer doctor')).toContain('\x1b[32m');
    expect(await shown('sandboxer get nowhere')).toContain('\x1b[31m');
    for (const [command, more] of [
      ['sandboxer doctor', { NO_COLOR: '1' }],
      ['sandboxer doctor --no-color', {}],
      ['TERM=dumb sandboxer doctor', {}],
      ['sandboxer doctor | cat', {}],
      ['sandboxer get nowhere 2>&1 | cat', {}],
    ] as const)
      expect((await shown(command, more)).replaceAll('\r\x1b[2K', ''), command).not.toMatch(/\x1b\[\d+m/);
  });

  it.each(TRANSCRIPTS.map((transcript) => [transcript.name, transcript] as const))(
    '%s',
    async (name, transcript) => {
      const file = join(FOLDER, `${name}.${columns}.txt`);
      const text = await shown(transcript);
      if (UPDATES) writeFileSync(file, text);
      expect(text).toBe(existsSync(file) ? readFileSync(file, 'utf8') : '');
      for (const line of text.split('\n')) expect(line).not.toMatch(/\x1b/);
    },
  );
});

/** The commonest: each is looked at when it succeeds, when there is nothing, and when it fails. */
it.each(['run', 'list', 'get', 'exec', 'cp', 'destroy', 'credits', 'events', 'logs', 'snapshots'])(
  '%s is kept in all three moods',
  (name) => {
    const names = TRANSCRIPTS.map((transcript) => transcript.name);
    expect(names).toEqual(expect.arrayContaining([name, `${name}-empty`, `${name}-error`]));
  },
);

it('transcripts: no file is kept for a transcript that is gone', () => {
  const wanted = TRANSCRIPTS.flatMap(({ name }) => [`${name}.140.txt`, `${name}.80.txt`]);
  expect(
    readdirSync(FOLDER)
      .filter((file) => file.endsWith('.txt'))
      .sort(),
  ).toEqual(wanted.sort());
});
