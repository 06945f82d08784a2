import { spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const MAIN = resolve(import.meta.dirname, '../../src/cli/main.ts');
const has = (program: string) => spawnSync('sh', ['-c', `command -v ${program}`]).status === 0;
const bin = mkdtempSync(join(tmpdir(), 'sbx-completion-'));
const env = { ...process.env, PATH: `${bin}:${process.env.PATH}` };

beforeAll(() => {
  const node = `'${process.execPath}' --disable-warning=ExperimentalWarning`;
  // The ids of sandboxes come from `list`, which would want a server.
  const script = `#!/bin/sh\n[ "$1" = list ] && printf 'box-1\\nother\\n' && exit\nexec ${node} '${MAIN}' "$@"\n`;
  writeFileSync(join(bin, 'sandboxer'), script);
  chmodSync(join(bin, 'sandboxer'), 0o755);
});
afterAll(() => rmSync(bin, { recursive: true }));

/** What bash would offer for the last word. */
function offered(lines: readonly (readonly string[])[]): string[][] {
  const asks = lines.map((words) => {
    const quoted = words.map((word) => `'${word}'`).join(' ');
    return `COMP_WORDS=(${quoted}); COMP_CWORD=${words.length - 1}; _sandboxer; echo "\${COMPREPLY[*]}"`;
  });
  const script = ['source <(sandboxer completion bash)', 'complete -p sandboxer >/dev/null', ...asks];
  const { status, stdout, stderr } = spawnSync('bash', ['-c', `set -e\n${script.join('\n')}`], {
    env,
    encoding: 'utf8',
  });
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  return stdout
    .trimEnd()
    .split('\n')
    .map((line) => line.split(' '));
}

describe('completion', () => {
  it.runIf(has('bash'))('offers commands, subcommands, options and sandboxes in bash', () => {
    const [commands, below, ids, options] = offered([
      ['sandboxer', 'prof'],
      ['sandboxer', 'profiles', 's'],
      ['sandboxer', 'exec', 'box'],
      ['sandboxer', 'list', '--js'],
    ]);
    expect(commands).toEqual(['profiles']);
    expect(below).toEqual(['show']);
    expect(ids).toEqual(['box-1']);
    expect(options).toEqual(['--json']);
  });

  it.runIf(has('zsh'))('loads in zsh', () => {
    const load =
      'autoload -U compinit; compinit -u -D; eval "$(sandboxer completion zsh)"; print $_comps[sandboxer]';
    expect(spawnSync('zsh', ['-f', '-c', load], { env, encoding: 'utf8' })).toMatchObject({
      stderr: '',
      stdout: '_sandboxer\n',
    });
  });

  it.runIf(has('fish'))('loads in fish', () => {
    const load = 'sandboxer completion fish | source; complete -C "sandboxer prof"';
    const { stdout, stderr } = spawnSync('fish', ['--no-config', '-c', load], { env, encoding: 'utf8' });
    expect(stderr).toBe('');
    expect(stdout).toMatch(/^profiles\t/m);
  });

  it('is a document with --json', () => {
    const { stdout } = spawnSync('sandboxer', ['completion', 'fish', '--json'], { env, encoding: 'utf8' });
    expect(JSON.parse(stdout)).toMatchObject({ shell: 'fish', script: expect.stringContaining('complete') });
  });
});
