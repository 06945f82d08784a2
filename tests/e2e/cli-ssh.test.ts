import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const launcher = join(import.meta.dirname, '..', '..', 'sandboxer');
const isRoot = process.getuid?.() === 0;
const has = (program: string) => spawnSync('sh', ['-c', `command -v ${program}`]).status === 0;
const canRun = isRoot && existsSync('/usr/sbin/sshd') && has('crun') && has('ssh') && has('scp');

/** The system's own ssh and scp, an sshd inside a sandbox without any network, and the exec channel between them. */
describe.runIf(canRun)('ssh into a sandbox of this machine', () => {
  const dir = mkdtempSync(join(tmpdir(), 'sandboxer-ssh-'));
  const env = {
    ...process.env,
    SANDBOXER_STATE_DIR: join(dir, 'state'),
    SANDBOXER_LOCAL: '1',
    SANDBOXER_DOCKER: '0',
  };
  const run = (program: string, ...args: string[]) =>
    spawnSync(program, args, { env, encoding: 'utf8', timeout: 150_000 });

  beforeAll(() => {
    const made = run(launcher, 'create', '--profile', 'agent-dev', '--id', 'box');
    if (made.status !== 0) throw new Error(made.stderr);
  });
  afterAll(() => {
    run(launcher, 'destroy', 'box');
    run(launcher, 'daemon', 'stop');
    rmSync(dir, { recursive: true, force: true });
  });

  it('ssh into a sandbox of this machine runs a command and ends with its exit code', () => {
    expect(run(launcher, 'ssh', 'box', '--', 'id -un')).toMatchObject({ status: 0, stdout: 'user\n' });
    expect(run(launcher, 'ssh', 'box', '--', 'exit 7').status).toBe(7);
  });

  it('ssh into a sandbox of this machine gives a configuration that scp works with', () => {
    const config = join(dir, 'ssh_config');
    writeFileSync(config, run(launcher, 'ssh', 'box', '--print-config').stdout);
    expect(readFileSync(config, 'utf8')).toMatch(/^Host sandboxer-box\n/);
    writeFileSync(join(dir, 'note.txt'), 'through scp\n');
    const copied = run('scp', '-F', config, join(dir, 'note.txt'), 'sandboxer-box:note.txt');
    expect(copied).toMatchObject({ status: 0 });
    expect(run('ssh', '-F', config, 'sandboxer-box', 'cat', 'note.txt').stdout).toBe('through scp\n');
    expect(run(launcher, 'exec', 'box', '--', 'cat', '/home/user/note.txt').stdout).toBe('through scp\n');
  });
});
