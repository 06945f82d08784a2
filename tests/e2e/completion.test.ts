import { spawnSync } from 'node:child_process';
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CliWorld } from './cli-world.ts';

const has = (program: string) => spawnSync('sh', ['-c', `command -v ${program}`]).status === 0;

/** Lines up to the cursor, and what every shell offers for their last word. */
const OFFERED: readonly (readonly [line: string, offered: readonly string[]])[] = [
  ['sandboxer prof', ['profiles']],
  ['sandboxer profiles s', ['show']],
  ['sandboxer profiles list s', []],
  ['sandboxer list --js', ['--json']],
  ['sandboxer keys create --actor a', ['adm', 'agt', 'atm']],
  ['sandboxer get box', ['box-1', 'box-2']],
  ['sandboxer destroy box-1 ot', ['other']],
  ['sandboxer create --profile stub-b', ['stub-basic']],
  ['sandboxer hosts drain lo', ['local']],
  ['sandboxer restore snap_', ['SNAPSHOT']],
  ['sandboxer extensions show ext.', ['ext.saas-stub']],
];

let world: CliWorld;
let env: Record<string, string>;
let snapshot: string;

beforeAll(async () => {
  world = await CliWorld.open();
  const bin = world.folder('bin');
  const node = `'${process.execPath}' --disable-warning=ExperimentalWarning`;
  writeFileSync(join(bin, 'sandboxer'), `#!/bin/sh\nexec ${node} '${world.main}' "$@"\n`);
  chmodSync(join(bin, 'sandboxer'), 0o755);
  env = { ...world.env, PATH: `${bin}:${world.env.PATH}`, HOME: world.folder('home'), LANG: 'C.UTF-8' };
  await world.json(['credits', 'grant', '10']);
  for (const id of ['box-1', 'box-2', 'other']) await world.json(['create', '-p', 'stub-basic', '--id', id]);
  snapshot = (await world.json<{ snapshot_id: string }>(['snapshot', 'box-1'])).snapshot_id;
});
afterAll(() => world.close());

function shell(program: string, args: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync(program, args, {
    env,
    encoding: 'utf8',
    cwd: world.folder('empty'),
  });
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  return stdout;
}

function expectOffered(shown: string): void {
  const lines = shown
    .trimEnd()
    .split('\n')
    .map((line) => line.trim().split(/\s+/).filter(Boolean).sort());
  const wanted = OFFERED.map(([, values]) => values.map((value) => value.replace('SNAPSHOT', snapshot)));
  expect(lines).toEqual(wanted.map((values) => [...values].sort()));
}

const quoted = (line: string) => line.split(' ').map((word) => `'${word}'`);

describe('completion', () => {
  it.runIf(has('bash'))('completion offers commands, options and what is on the server in bash', () => {
    const asks = OFFERED.map(([line]) => {
      const words = quoted(line);
      return `COMP_WORDS=(${words.join(' ')}); COMP_CWORD=${words.length - 1}; _sandboxer; echo ". \${COMPREPLY[*]}"`;
    });
    const shown = shell('bash', [
      '-c',
      ['set -e', 'source <(sandboxer completion bash)', ...asks].join('\n'),
    ]);
    expectOffered(shown.replaceAll(/^\. ?/gm, ''));
  });

  it.runIf(has('zsh'))('completion offers the same in zsh', () => {
    const asks = OFFERED.map(([line]) => {
      const words = quoted(line);
      return `words=(${words.join(' ')}); CURRENT=${words.length}; answer=(); _sandboxer; print -r -- ". $answer"`;
    });
    const script = [
      'autoload -U compinit; compinit -u -D; eval "$(sandboxer completion zsh)"',
      '[[ $_comps[sandboxer] == _sandboxer ]] || exit 1',
      `_describe() { answer=("\${(@)\${(P@)4}%%:*}") }; _files() { answer=() }`,
      ...asks,
    ];
    expectOffered(shell('zsh', ['-f', '-c', script.join('\n')]).replaceAll(/^\. ?/gm, ''));
  });

  it.runIf(has('fish'))('completion offers the same in fish', () => {
    const asks = OFFERED.map(
      ([line]) => `echo . (complete -C '${line}' | string match -rv '^\\./' | string replace -r '\\t.*' '')`,
    );
    const script = ['sandboxer completion fish | source', ...asks].join('\n');
    expectOffered(shell('fish', ['--no-config', '-c', script]).replaceAll(/^\. ?/gm, ''));
  });

  it('completion starts no server', async () => {
    const away = { SANDBOXER_STATE_DIR: join(world.directory, 'nobody') };
    const { code, stdout } = await world.run(['complete', '--', 'get', ''], { env: away });
    expect({ code, stdout }).toEqual({ code: 0, stdout: '' });
    const { running } = JSON.parse((await world.run(['daemon', '--json'], { env: away })).stdout);
    expect(running).toBe(false);
  });
});
