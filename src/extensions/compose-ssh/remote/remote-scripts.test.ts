import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { archiveOf, textEntry } from '../stack/ship-tree.ts';
import { DOWN, FACTS, UP } from './remote-scripts.ts';

/** A host whose programs only record their arguments. */
describe('scripts on a remote host', () => {
  let root: string;
  const log = () => readFileSync(join(root, 'log'), 'utf8');
  const shim = (name: string, body = '') => {
    const path = join(root, 'bin', name);
    writeFileSync(path, `#!/bin/sh\nprintf '%s\\n' "${name} $*" "TOKEN=$SBX_0" >>"${root}/log"\n${body}\n`);
    chmodSync(path, 0o755);
  };
  const sh = (script: string, args: readonly string[], input: Uint8Array = Buffer.alloc(0)) =>
    spawnSync('sh', ['-c', script, 'sh', ...args], {
      input,
      env: { PATH: `${join(root, 'bin')}:/usr/bin:/bin`, HOME: root },
      encoding: 'utf8',
    });

  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'sbx-scripts-'));
    mkdirSync(join(root, 'bin'));
    writeFileSync(join(root, 'log'), '');
  });
  afterEach(() => rmSync(root, { recursive: true }));

  async function up(generation: 'v1' | 'v2'): Promise<string> {
    shim('docker');
    shim('docker-compose');
    const stack = join(root, 'stacks', 'sbxp');
    mkdirSync(stack, { recursive: true });
    writeFileSync(join(stack, 'marker'), '{}');
    const parts: Uint8Array[] = [Buffer.from(`file key ${Buffer.from('in memory').toString('base64')}\n`)];
    parts.push(Buffer.from(`env SBX_0 ${Buffer.from('two\nlines\n').toString('base64')}\n.\n`));
    const files = [textEntry('stack.yml', 'a'), textEntry('places', 'directory\0tree/new\0\0')];
    for await (const part of archiveOf(files)) parts.push(part);
    const { status } = sh(UP, [root, join(root, 'shm'), 'sbxp', generation], Buffer.concat(parts));
    expect(status).toBe(0);
    expect(readFileSync(join(root, 'shm', 'sbxp', 'key'), 'utf8')).toBe('in memory');
    expect(existsSync(join(stack, 'tree', 'new'))).toBe(true);
    expect(existsSync(join(stack, 'up'))).toBe(true);
    return log();
  }

  it.each([
    ['v1', 'docker-compose'],
    ['v2', 'docker compose'],
  ] as const)(
    'compose %s is called as %s, with files of ours only, secrets in no argument',
    async (generation, command) => {
      const said = await up(generation);
      const stack = join(root, 'stacks', 'sbxp');
      expect(said).toContain(
        `${command} -p sbxp --project-directory ${stack} --env-file no-variables -f stack.yml up -d --quiet-pull\nTOKEN=two\nlines\n`,
      );
      expect(
        said
          .split('\n')
          .filter((line) => line.startsWith('docker'))
          .join('\n'),
      ).not.toMatch(/two|in memory/);
    },
  );

  it('a remote script removes the images that were pulled for a stack, if the request says so, and no other', async () => {
    shim(
      'docker',
      'case "$*" in *"inspect pulled:1"*) exit 1;; "rmi pulled:1") echo "Untagged: pulled:1";; esac',
    );
    shim('docker-compose');
    const stack = join(root, 'stacks', 'sbxp');
    mkdirSync(stack, { recursive: true });
    writeFileSync(join(stack, 'marker'), '{}');
    const parts: Uint8Array[] = [Buffer.from('.\n')];
    const files = [textEntry('places', ''), textEntry('watched-images', 'there:1\npulled:1\n')];
    for await (const part of archiveOf(files)) parts.push(part);
    expect(sh(UP, [root, join(root, 'shm'), 'sbxp', 'v1'], Buffer.concat(parts)).status).toBe(0);
    const { stdout } = sh(DOWN, [root, join(root, 'shm'), 'sbxp', 'me', 'remove']);
    expect(stdout).toContain('removed image pulled:1\n');
    expect(log()).not.toContain('rmi there');
    expect(existsSync(stack)).toBe(false);
  });

  it('a remote script finds the newer compose first, the older where that is missing', () => {
    shim('docker', 'case "$1" in compose) exit 0;; version) echo "engine 28.0";; esac');
    expect(sh(FACTS, ['boxes']).stdout).toContain('compose v2\n');
    shim('docker', 'case "$1" in compose) exit 1;; version) echo "engine 20.10";; esac');
    shim('docker-compose');
    const { stdout } = sh(FACTS, ['boxes']);
    expect(stdout).toContain('compose v1\n');
    expect(stdout).toContain(`root ${join(root, 'boxes')}\n`);
  });
});
