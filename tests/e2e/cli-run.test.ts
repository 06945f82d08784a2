/** What `run` takes by itself, and what reaches its program from outside. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, openSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../support/until.ts';
import { CliWorld, outcomeOf } from './cli-world.ts';

let world: CliWorld;
let reason = '';
beforeAll(async () => {
  world = await CliWorld.open({ env: { SANDBOXER_LOCAL: '1' } });
  await world.json(['credits', 'grant', '100']);
  await world.json(['create', '--profile', 'stub-basic', '--id', 'box']);
  const tried = await world.run(['run', '--extension', 'ext.local', '--', 'true']);
  if (tried.code !== 0) reason = tried.stderr;
}, 120_000);
afterAll(() => world.close());

async function isGone(label: string): Promise<boolean> {
  const { items } = await world.json<{ items: { state: string }[] }>(['list', '--label', label]);
  return items.length === 0;
}

describe('run without a profile', () => {
  it('run without a profile uses profile.run: no setup, and a long life', async ({ skip }) => {
    skip(reason.includes('SBX_NO_ROUTE'), reason);
    const { code, stdout } = await world.run(['run', '--json', '--ttl', '3d', '--', 'sh', '-c', 'ls /tmp']);
    const [made, ...rest] = stdout.split('\n').filter(Boolean);
    expect(code).toBe(0);
    expect(JSON.parse(made ?? '').sandbox).toMatchObject({ profile: 'profile.run' });
    expect(rest.map((line) => JSON.parse(line).type)).toEqual(['started', 'exit']);
  });

  it('run without a profile needs only the program in an image', async ({ skip }) => {
    skip(reason.includes('SBX_NO_ROUTE'), reason);
    const folder = world.folder('image');
    writeFileSync(
      join(world.cwd, 'hello.c'),
      '#include <stdio.h>\nint main() { puts("hello"); return 3; }\n',
    );
    const built = spawnSync('cc', ['-static', '-o', join(folder, 'hello'), join(world.cwd, 'hello.c')]);
    skip(built.status !== 0, 'No static program can be built here.');
    spawnSync('tar', ['-cf', join(world.cwd, 'scratch.tar'), '-C', folder, 'hello']);
    await world.json(['images', 'import', 'scratch.tar', '--name', 'scratch']);
    expect(await world.run(['run', '--image', 'scratch', '--', '/hello'])).toEqual({
      code: 3,
      stdout: 'hello\n',
      stderr: '',
    });
  });
});

describe('signals', () => {
  const commands = {
    run: ['run', '-p', 'stub-basic', '--label', 'by=signals', '--'],
    exec: ['exec', 'box', '--'],
  };
  for (const [name, command] of Object.entries(commands)) {
    it.each(['INT', 'TERM', 'HUP', 'QUIT', 'USR1', 'USR2'])(
      `${name}: SIG%s is the program’s`,
      async (signal) => {
        const script = `trap "echo caught; exit 9" ${signal}; echo ready; while :; do sleep 0.1; done`;
        const child = world.start([...command, 'sh', '-c', script]);
        child.stdin?.end();
        const outcome = outcomeOf(child);
        await once(child.stdout as NodeJS.ReadableStream, 'data');
        child.kill(`SIG${signal}` as NodeJS.Signals);
        expect(await outcome).toMatchObject({ code: 9, stdout: 'ready\ncaught\n' });
      },
    );
  }

  it('signals end a program that minds none, and the sandbox goes', async () => {
    const child = world.start([...commands.run, 'sh', '-c', 'echo ready; exec sleep 600']);
    child.stdin?.end();
    const outcome = outcomeOf(child);
    await once(child.stdout as NodeJS.ReadableStream, 'data');
    child.kill('SIGTERM');
    expect((await outcome).code).toBe(143);
    await until(() => isGone('by=signals'));
  });

  it('a second signal ends the command and destroys the sandbox', async () => {
    const script = 'trap "echo no" TERM QUIT; echo ready; while :; do sleep 0.1; done';
    const child = world.start([...commands.run, 'sh', '-c', script]);
    child.stdin?.end();
    const outcome = outcomeOf(child);
    await once(child.stdout as NodeJS.ReadableStream, 'data');
    child.kill('SIGTERM');
    await once(child.stdout as NodeJS.ReadableStream, 'data');
    child.kill('SIGQUIT');
    expect((await outcome).code).toBe(131);
    await until(() => isGone('by=signals'));
  });
});

describe.runIf(existsSync('/dev/full'))('output that cannot be written', () => {
  it.each([
    ['run', '-p', 'stub-basic', '--', 'echo', 'hi'],
    ['exec', 'box', '--', 'echo', 'hi'],
    ['exec', '--json', 'box', '--', 'echo', 'hi'],
    ['list'],
  ])('a failed write of output is a failure, each time: %s', async (...args) => {
    for (let n = 0; n < 8; n += 1) {
      const full = openSync('/dev/full', 'w');
      const { main, cwd, env } = world;
      const options = { cwd, env, stdio: ['ignore', full, 'pipe'] } as const;
      const child = spawn(process.execPath, [main, ...args], { ...options, stdio: [...options.stdio] });
      const { code } = await outcomeOf(child);
      closeSync(full);
      expect(code).toBe(args[0] === 'list' ? 1 : 125);
    }
  });
});
