import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createConnection } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { encodeTarHeader } from '../../src/archive/tar/write-tar.ts';
import { CliWorld, outcomeOf } from './cli-world.ts';

let world: CliWorld;

beforeAll(async () => {
  world = await CliWorld.open();
  await world.json(['credits', 'grant', '100']);
  await world.json(['create', '--profile', 'stub-basic', '--id', 'box']);
});
afterAll(() => world.close());

async function stateOf(id: string): Promise<string> {
  return (await world.json<{ state: string }>(['get', id])).state;
}

async function until(condition: () => Promise<boolean> | boolean): Promise<void> {
  for (let n = 0; n < 1_200; n += 1) {
    if (await condition()) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error('It never came to that.');
}

describe('maintenance commands', () => {
  it('smoke runs one life on each backend and reports the time of each part', async () => {
    const tried = await world.json<{ items: Record<string, unknown>[] }>([
      'smoke',
      'ext.saas-stub',
      '--profile',
      'stub-basic',
    ]);
    expect(tried.items).toMatchObject([{ extension: 'ext.saas-stub', ok: true, problem: null }]);
    for (const part of ['ready_ms', 'exec_ms', 'destroyed_ms'])
      expect(tried.items[0]?.[part]).toBeTypeOf('number');
    const refused = await world.run(['smoke', 'ext.nowhere', '--profile', 'stub-basic']);
    expect(refused).toMatchObject({ code: 5 });
    expect(refused.stdout).toContain('failed');
  });

  it('reap-stale lists first, and destroys only with --yes', async () => {
    await world.json(['create', '--profile', 'stub-basic', '--id', 'stale', '--ttl', '1s']);
    await until(async () => ['expired', 'destroying', 'destroyed'].includes(await stateOf('stale')));
    const dry = await world.json<{ dry_run: boolean; items: unknown[] }>(['reap-stale']);
    expect(dry.dry_run).toBe(true);
    const reaped = await world.json<{ items: { outcome: string }[] }>(['reap-stale', '--yes']);
    for (const { outcome } of reaped.items) expect(outcome).toBe('removed');
    expect(await stateOf('box')).not.toBe('destroyed');
    expect((await world.json<{ items: unknown[] }>(['reap-stale'])).items).toEqual([]);
  });
});

describe('sandboxes', () => {
  it('sandboxes are created, shown, listed, extended and destroyed', async () => {
    const created = await world.run([
      'create',
      '-p',
      'stub-basic',
      '--id',
      'one',
      '--label',
      'who=me',
      '--ttl',
      '10m',
    ]);
    expect(created).toMatchObject({ code: 0, stdout: 'one\n' });
    expect(created.stderr).toMatch(/ready in .* on ext\.saas-stub, expires in/);
    expect(await world.json(['get', 'one'])).toMatchObject({
      sandbox_id: 'one',
      state: 'ready',
      labels: { who: 'me' },
    });
    const listed = await world.json<{ items: { sandbox_id: string }[] }>(['list', '--label', 'who=me']);
    expect(listed.items.map((item) => item.sandbox_id)).toEqual(['one']);
    const table = await world.run(['ls']);
    expect(table.stdout).toMatch(/^ID +STATE +PROFILE/);
    expect(table.stdout).toMatch(/^one +ready +stub-basic/m);
    expect((await world.run(['list', '-q', '-l', 'who=me'])).stdout).toBe('one\n');
    expect((await world.run(['extend', 'one', '30m'])).stderr).toMatch(/expires in (30m|29m59s)/);
    const shorter = await world.run(['extend', 'one', '5m']);
    expect(shorter.stderr).toMatch(/earlier than before.*"sandboxer extend one (30m|29m\d+s)" restores it/);
    const cut = await world.run(['extend', 'one', '100h']);
    expect(cut.stderr).toMatch(/100h is more than is left of the longest life of profile\.stub-basic/);
    expect(await world.json<Record<string, unknown>>(['extend', 'one', '100h'])).toMatchObject({
      extended: { limited: true },
    });
    expect(await world.run(['rm', 'one'])).toMatchObject({ code: 0, stdout: 'one\n' });
    expect(await stateOf('one')).toBe('destroyed');
    expect((await world.json<{ items: unknown[] }>(['list', '--label', 'who=me'])).items).toEqual([]);
    expect(
      (await world.json<{ items: unknown[] }>(['list', '--all', '--label', 'who=me'])).items,
    ).toHaveLength(1);
  });

  it('a failed create: its answer and the sandbox name the backend and what was made', async () => {
    const fault = 'fault:={"op":"create","kind":"quota"}';
    const failed = await world.run([
      '--json',
      'create',
      '-p',
      'stub-basic',
      '--id',
      'full',
      '--input',
      fault,
    ]);
    expect(failed.code).toBe(5);
    const whose = { backend: 'ext.saas-stub', creation: 'not_created' };
    expect(JSON.parse(failed.stdout)).toMatchObject({
      error: { code: 'SBX_BACKEND_QUOTA', fault: 'capacity', ...whose },
    });
    expect(await world.json(['get', 'full'])).toMatchObject({
      state: 'failed',
      failure: { code: 'SBX_BACKEND_QUOTA', ...whose },
    });
    expect((await world.run(['get', 'full'])).stdout).toMatch(/failed on +ext\.saas-stub/);
    await world.json(['destroy', 'full']);
  });

  it('sandboxes are paused, resumed, recreated, snapshotted, restored and forked', async () => {
    await world.json(['create', '-p', 'stub-basic', '--id', 'life']);
    await world.run(['cp', '-', 'life:note.txt'], { input: 'remember' });
    expect(await world.json(['pause', 'life'])).toMatchObject({ state: 'paused' });
    expect((await world.run(['exec', 'life', 'true'])).code).toBe(125);
    expect(await world.json(['resume', 'life'])).toMatchObject({ pause_kind: null });
    const { snapshot_id } = await world.json<{ snapshot_id: string }>([
      'snapshot',
      'life',
      '--name',
      'first',
    ]);
    expect(await world.json(['snapshots', 'show', snapshot_id])).toMatchObject({
      name: 'first',
      sandbox_id: 'life',
    });
    expect(await world.json(['snapshots', 'rename', snapshot_id, 'second'])).toMatchObject({
      name: 'second',
    });
    expect(await world.json(['snapshots', 'show', 'second'])).toMatchObject({ snapshot_id });
    expect(await world.run(['restore', 'first'])).toMatchObject({
      code: 3,
      stderr: expect.stringContaining('There is no snapshot named "first"'),
    });
    await world.json(['restore', 'second', '--id', 'again']);
    expect((await world.run(['exec', 'again', 'cat', 'note.txt'])).stdout).toBe('remember');
    await world.json(['fork', 'life', '--id', 'twin']);
    expect((await world.run(['exec', 'twin', 'cat', 'note.txt'])).stdout).toBe('remember');
    expect(await world.json(['recreate', 'life'])).toMatchObject({ sandbox_id: 'life', generation: 2 });
    expect((await world.run(['exec', 'life', 'cat', 'note.txt'])).code).toBe(1);
    await world.json(['snapshots', 'delete', snapshot_id]);
    expect((await world.run(['destroy', 'life', 'again', 'twin'])).stdout).toBe('life\nagain\ntwin\n');
  });

  it('sandboxes report the result of several, each on its own', async () => {
    await world.json(['create', '-p', 'stub-basic', '--id', 'there']);
    const { code, stdout, stderr } = await world.run(['rm', 'nowhere', 'there']);
    expect(code).toBe(3);
    expect(stdout).toBe('there\n');
    expect(stderr).toContain('SBX_NOT_FOUND');
  });

  it('sandboxes are exported over no existing file, unless that is asked for', async () => {
    const { snapshot_id } = await world.json<{ snapshot_id: string }>(['snapshot', 'box']);
    writeFileSync(join(world.cwd, 'there.snap'), 'mine');
    const refused = await world.run(['snapshots', 'export', snapshot_id, 'there.snap']);
    expect(refused.code).toBe(2);
    expect(refused.stderr).toMatch(/There is a file there\.snap already\.[\s\S]*--force/);
    expect((await world.run(['snapshots', 'export', snapshot_id, 'nowhere/a.snap'])).code).toBe(2);
    // The stub has no files of snapshots: what is asked for is refused by the server, and the file stays.
    expect((await world.run(['snapshots', 'export', snapshot_id, 'there.snap', '--force'])).code).toBe(4);
    expect(readFileSync(join(world.cwd, 'there.snap'), 'utf8')).toBe('mine');
    await world.json(['snapshots', 'delete', snapshot_id]);
  });

  it('explain their route and their events', async () => {
    expect((await world.run(['route', 'explain', 'box'])).stdout).toMatch(/^ +1 +ext\.saas-stub/m);
    const plan = await world.json<{ candidates: unknown[] }>(['route', 'resolve', '-p', 'stub-basic']);
    expect(plan.candidates).toHaveLength(1);
    const events = await world.json<{ items: { type: string }[] }>(['events', 'box']);
    expect(events.items.map(({ type }) => type)).toContain('sandbox.ready');
    expect((await world.run(['usage', 'box'])).stdout).toContain('ext.saas-stub');
  });

  it('sandboxes are followed as they change', async () => {
    const follower = world.start(['events', 'box', '--follow', '--json', '--after', '0']);
    const [first] = (await once(follower.stdout as NodeJS.ReadableStream, 'data')) as [Buffer];
    follower.kill('SIGINT');
    expect(JSON.parse(first.toString().split('\n')[0] ?? '')).toMatchObject({ specversion: '1.0' });
    await once(follower, 'close');
  });
});

describe('exec', () => {
  it('exec gives the program’s own output and exit code', async () => {
    expect(await world.run(['exec', 'box', '--', 'sh', '-c', 'echo out; echo err >&2; exit 7'])).toEqual({
      code: 7,
      stdout: 'out\n',
      stderr: 'err\n',
    });
    expect((await world.run(['exec', 'box', '-e', 'A=5', '--', 'sh', '-c', 'echo $A'])).stdout).toBe('5\n');
    expect((await world.run(['exec', 'box', '-e', 'A=6', 'printenv', 'A'])).stdout).toBe('6\n');
    expect(await world.run(['exec', 'box', '--nonsense', 'true'])).toMatchObject({
      code: 125,
      stderr: expect.stringContaining('--nonsense'),
    });
    expect((await world.run(['exec', 'box', 'no-such-program'])).code).toBe(127);
    expect((await world.run(['exec', 'box', '/etc/passwd'])).code).toBe(126);
    expect((await world.run(['exec', 'nowhere', 'true'])).code).toBe(125);
    expect((await world.run(['exec', 'box'])).code).toBe(125);
    expect((await world.run(['exec', '--nonsense', 'box', 'true'])).code).toBe(125);
  });

  it('exec takes variables, a directory, input and a time limit', async () => {
    const shown = await world.run(['exec', '-e', 'GREETING=hi there', 'box', 'sh', '-c', 'echo "$GREETING"']);
    expect(shown.stdout).toBe('hi there\n');
    expect(
      (await world.run(['exec', '-i', 'box', 'wc', '-c'], { input: 'x'.repeat(300_000) })).stdout.trim(),
    ).toBe('300000');
    expect((await world.run(['exec', 'box', 'cat'], { input: 'not passed on' })).stdout).toBe('');
    const startedAt = Date.now();
    const late = await world.run(['exec', '--timeout', '1s', 'box', 'sleep', '600']);
    expect(late.code).toBe(137);
    expect(late.stderr).toContain('time was up');
    expect(Date.now() - startedAt).toBeLessThan(120_000);
  });

  it('exec passes bytes through unchanged', async () => {
    const child = world.start(['exec', 'box', 'head', '-c', '3000000', '/dev/zero']);
    child.stdin?.end();
    let bytes = 0;
    child.stdout?.on('data', (part: Buffer) => {
      bytes += part.length;
    });
    await once(child, 'close');
    expect(bytes).toBe(3_000_000);
  });

  it('exec streams items of the API as JSON', async () => {
    const { stdout } = await world.run(['exec', '--json', 'box', 'echo', 'hi']);
    const items = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(items.map(({ type }) => type)).toEqual(['started', 'stdout', 'exit']);
    expect(items[1]).toEqual({ type: 'stdout', offset: 0, data: 'hi\n', encoding: 'utf8' });
    expect(items[2].exit).toMatchObject({ code: 0 });
  });

  it('exec passes Ctrl-C on to the program', async () => {
    const child = world.start([
      'exec',
      'box',
      'sh',
      '-c',
      'trap "echo caught; exit 9" INT; echo ready; while :; do sleep 0.1; done',
    ]);
    const outcome = outcomeOf(child);
    await once(child.stdout as NodeJS.ReadableStream, 'data');
    child.kill('SIGINT');
    expect(await outcome).toMatchObject({ code: 9, stdout: 'ready\ncaught\n' });
  });

  it('exec leaves programs in the background', async () => {
    const started = await world.run([
      'exec',
      '-d',
      'box',
      '--',
      'sh',
      '-c',
      'echo begun; sleep 1; echo done',
    ]);
    const id = started.stdout.trim();
    expect(started.code).toBe(0);
    expect((await world.run(['ps', 'box'])).stdout).toContain(id);
    expect((await world.run(['logs', 'box', id, '-f'])).stdout).toBe('begun\ndone\n');
    expect((await world.run(['logs', 'box'])).stdout).toBe('begun\ndone\n');
  });

  it('exec ends programs in the background', async () => {
    const script = 'trap "echo caught; exit 3" USR1; echo ready; while :; do sleep 0.1; done';
    const id = (await world.run(['exec', '-d', 'box', '--', 'sh', '-c', script])).stdout.trim();
    const row = async () =>
      (await world.run(['ps', 'box'])).stdout.split('\n').find((line) => line.startsWith(id)) ?? '';
    await until(async () => (await world.run(['logs', 'box', id])).stdout === 'ready\n');
    expect(await row()).toContain('running');
    const signalled = await world.json(['kill', 'box', id, '--signal', 'usr1']);
    expect(signalled).toEqual({ sandbox_id: 'box', process_id: id, signal: 'SIGUSR1' });
    await until(async () => (await row()).includes('exited 3'));
    const other = (await world.run(['exec', '-d', 'box', '--', 'sleep', '600'])).stdout.trim();
    expect(await world.run(['kill', 'box', other])).toMatchObject({ code: 0, stdout: `${other}\n` });
    expect((await world.run(['logs', 'box', other, '-f'])).code).toBe(0);
    expect((await world.run(['kill', 'box', 'p0-nobody'])).code).toBe(3);
    expect((await world.run(['kill', 'box', other, '-s', 'NONSENSE'])).code).toBe(2);
  });

  it('exec starts a shell on request', async () => {
    const { code, stdout } = await world.run(['shell', 'box'], { input: 'echo from-the-shell; exit 4\n' });
    expect(stdout).toContain('from-the-shell');
    expect(code).toBe(4);
  });
});

describe('run', () => {
  it('creates, runs and destroys', async () => {
    const { code, stdout, stderr } = await world.run(
      ['run', '-p', 'stub-basic', '--label', 'by=run', '--', 'sh', '-c', 'cat; exit 5'],
      {
        input: 'through',
      },
    );
    expect({ code, stdout, stderr }).toEqual({ code: 5, stdout: 'through', stderr: '' });
    await until(async () => {
      const { items } = await world.json<{ items: unknown[] }>(['list', '--label', 'by=run']);
      return items.length === 0;
    });
  });

  it('run uploads a directory without ignored files', async () => {
    const folder = world.folder('project');
    writeFileSync(join(folder, 'keep.txt'), 'kept');
    writeFileSync(join(folder, 'drop.log'), 'dropped');
    writeFileSync(join(folder, '.gitignore'), '*.log\n');
    const { stdout } = await world.run(['run', '-p', 'stub-basic', '--workdir', folder, '--', 'ls']);
    expect(stdout).toContain('keep.txt');
    expect(stdout).not.toContain('drop.log');
  });

  it('run keeps the sandbox on request, and fails as docker does', async () => {
    const kept = await world.run(['run', '-p', 'stub-basic', '--id', 'kept', '--keep', '--', 'true']);
    expect(kept.code).toBe(0);
    expect(await stateOf('kept')).toBe('active');
    await world.run(['rm', 'kept']);
    expect((await world.run(['run', '-p', 'no-such-profile', '--', 'true'])).code).toBe(125);
    expect((await world.run(['run', '-p', 'stub-basic', '--', 'no-such-program'])).code).toBe(127);
  });

  it('run takes no id that is in use, and destroys no sandbox that it did not make', async () => {
    const options = ['-p', 'stub-basic', '--id', 'not-yours'];
    await world.json(['create', ...options]);
    await world.run(['cp', '-', 'not-yours:note.txt'], { input: 'kept' });
    const recipes = [options, [...options, '--ttl', '7m'], [...options, '--mirror', '/no/such/directory']];
    for (const recipe of recipes) {
      const { code, stderr } = await world.run(['run', ...recipe, '--', 'rm', 'note.txt']);
      expect(code, recipe.join(' ')).toBe(125);
      if (!recipe.includes('--mirror'))
        expect(stderr).toMatch(/SBX_ID_TAKEN[\s\S]*sandboxer exec not-yours --/);
    }
    expect((await world.run(['exec', 'not-yours', 'cat', 'note.txt'])).stdout).toBe('kept');
    await world.run(['rm', 'not-yours']);
    expect(await world.run(['run', ...options, '--', 'echo', 'mine'])).toMatchObject({
      code: 0,
      stdout: 'mine\n',
    });
    await until(async () => ['destroying', 'destroyed'].includes(await stateOf('not-yours')));
  });

  it('run interrupts the program first and destroys the sandbox then', async () => {
    const child = world.start([
      'run',
      '-p',
      'stub-basic',
      '--id',
      'stubborn',
      '--',
      'sh',
      '-c',
      'trap "echo no" INT; echo ready; while :; do sleep 0.1; done',
    ]);
    const outcome = outcomeOf(child);
    const output = child.stdout as NodeJS.ReadableStream;
    await once(output, 'data');
    child.kill('SIGINT');
    await once(output, 'data');
    child.kill('SIGINT');
    const { code, stdout } = await outcome;
    expect(stdout).toContain('no\n');
    expect(code).toBe(130);
    await until(async () => (await stateOf('stubborn')) === 'destroyed');
  });

  it('run leaves no sandbox behind when it is ended while creating', async () => {
    await world.stub.setFaults({ op: 'create', kind: 'slow', params: { ms: 3000 } });
    const child = world.start(['run', '-p', 'stub-basic', '--id', 'early', '--', 'true']);
    child.stdin?.end();
    const outcome = outcomeOf(child);
    await until(async () => (await world.run(['get', 'early'])).code === 0);
    child.kill('SIGTERM');
    await outcome;
    await world.stub.setFaults();
    await until(async () => (await stateOf('early')) === 'destroyed');
  });
});

describe('Ctrl-C', () => {
  it('Ctrl-C destroys a sandbox that is being created', async () => {
    await world.stub.setFaults({ op: 'create', kind: 'slow', params: { ms: 3000 } });
    const child = world.start(['create', '-p', 'stub-basic', '--id', 'unfinished']);
    const outcome = outcomeOf(child);
    await until(async () => (await world.run(['get', 'unfinished'])).code === 0);
    child.kill('SIGINT');
    const { code, stdout, stderr } = await outcome;
    expect({ code, stdout }).toEqual({ code: 130, stdout: '' });
    expect(stderr).toMatch(/interrupted[\s\S]*SBX_CLI_INTERRUPTED[\s\S]*unfinished is being destroyed/);
    await world.stub.setFaults();
    await until(async () => (await stateOf('unfinished')) === 'destroyed');
  });

  it('Ctrl-C ends a following command at once', async () => {
    const started = await world.json<{ process_id: string }>([
      'exec',
      '-d',
      'box',
      '--',
      'sh',
      '-c',
      'echo x; sleep 60',
    ]);
    for (const line of [
      `logs box ${started.process_id} --follow`,
      'events --follow --after 0',
      'list --watch',
    ]) {
      const child = world.start(line.split(' '));
      await once(child.stdout as NodeJS.ReadableStream, 'data');
      child.kill('SIGINT');
      // As a shell has it, 130.
      expect(await once(child, 'close'), line).toEqual([null, 'SIGINT']);
    }
  });
});

describe('files and ports', () => {
  it('files and ports are copied both ways', async () => {
    const folder = world.folder('tree');
    writeFileSync(join(folder, 'a.txt'), 'A');
    writeFileSync(join(world.folder('tree/sub'), 'b.bin'), Buffer.from([0, 255, 10]));
    expect(await world.run(['cp', folder, 'box:copy'])).toMatchObject({ code: 0 });
    expect((await world.run(['exec', 'box', 'cat', 'copy/a.txt'])).stdout).toBe('A');
    const back = join(world.directory, 'back');
    expect(await world.json(['cp', 'box:copy', back])).toEqual({ files: 2, path: back });
    expect(readFileSync(join(back, 'sub/b.bin'))).toEqual(Buffer.from([0, 255, 10]));
    expect(await world.run(['cp', join(folder, 'a.txt'), 'box:copy/sub/'])).toMatchObject({ code: 0 });
    await world.run(['cp', 'box:copy/sub/a.txt', world.folder('landing')]);
    expect(readFileSync(join(world.directory, 'landing/a.txt'), 'utf8')).toBe('A');
    expect((await world.run(['cp', 'box:copy/a.txt', '-'])).stdout).toBe('A');
    expect((await world.run(['cp', 'box:nowhere', back])).code).toBe(3);
    expect((await world.run(['cp', 'a', 'b'])).code).toBe(2);
  });

  it('files and ports come from the input and go to the output as bytes of one file', async () => {
    const bytes = Buffer.from([0, 255, 10, 13, 27]);
    expect(await world.run(['cp', '-', 'box:piped.bin'], { input: bytes })).toMatchObject({ code: 0 });
    expect((await world.run(['exec', 'box', '--', 'od', '-An', '-tu1', 'piped.bin'])).stdout.trim()).toBe(
      '0 255  10  13  27',
    );
    await world.run(['exec', 'box', '--', 'mkdir', '-p', 'some/where']);
    for (const target of ['box:some', 'box:some/', 'box:']) {
      const { code, stderr } = await world.run(['cp', '-', target], { input: 'x' });
      expect(stderr).toContain('the input has no name');
      expect(code).toBe(2);
    }
    const out = await world.run(['cp', 'box:some', '-']);
    expect(out).toMatchObject({ code: 2, stdout: '' });
    expect(out.stderr).toContain('tar -C some -c .');
    expect(await world.run(['cp', 'box:missing', '-'])).toMatchObject({ code: 3, stdout: '' });
    const dash = join(world.folder('dashes'), '-');
    writeFileSync(dash, 'a file');
    expect(await world.json(['cp', dash, 'box:dash'])).toMatchObject({ files: 1 });
    expect((await world.run(['exec', 'box', 'cat', 'dash'])).stdout).toBe('a file');
  });

  it('files and ports report their progress when the server ends in between', async () => {
    const entry = {
      path: '/x',
      kind: 'directory',
      size: 0,
      mode: 0o755,
      modified_at: '2026-01-01T00:00:00Z',
    };
    const broken = createServer((request, response) => {
      const path = request.url ?? '';
      if (path.includes('/files/stat')) {
        const kind = path.includes('tree') ? 'directory' : 'file';
        response.setHeader('content-type', 'application/json');
        response.end(JSON.stringify({ ...entry, kind, size: 1_000_000 }));
        return;
      }
      const header = {
        kind: 'file',
        mode: 0o644,
        size: 1_000_000,
        modifiedAtMs: 0,
        linkTarget: null,
      } as const;
      if (path.includes('/files/tree')) response.write(encodeTarHeader({ ...header, name: 'sub/big.bin' }));
      response.write(Buffer.alloc(2_000), () => setTimeout(() => response.destroy(), 50));
    });
    broken.listen(0, '127.0.0.1');
    await once(broken, 'listening');
    const url = `http://127.0.0.1:${(broken.address() as AddressInfo).port}`;
    const env = { SANDBOXER_URL: url, SANDBOXER_KEY: 'k'.repeat(20) };
    const tree = await world.run(['cp', 'box:tree', join(world.directory, 'cut')], { env });
    expect(tree.code).toBe(5);
    expect(tree.stderr).toMatch(
      /The copy of tree broke off at sub\/big\.bin: [\s\S]*SBX_CLI_BROKEN_OFF[\s\S]*cut\. .*sandboxer get box/,
    );
    const file = await world.run(['cp', 'box:file', join(world.directory, 'cut-file')], { env });
    expect(file).toMatchObject({
      code: 5,
      stderr: expect.stringMatching(/broke off after 2\.0 kB of 1\.0 MB/),
    });
    expect((await world.run(['cp', 'box:file', '-'], { env })).code).toBe(5);
    expect(existsSync(join(world.directory, 'cut-file'))).toBe(false);
    broken.close();
  });

  it('files and ports are reached from this machine', async () => {
    // The stub isolates nothing: a server of this machine is one of the sandbox's.
    const server = createServer((_request, response) => response.end('from inside'));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const child = world.start(['port-forward', 'box', `0:${port}`, '--json']);
    const outcome = outcomeOf(child);
    const [line] = (await once(child.stdout as NodeJS.ReadableStream, 'data')) as [string];
    const { local } = JSON.parse(line) as { local: number };
    const answer = await fetch(`http://127.0.0.1:${local}/`);
    expect(await answer.text()).toBe('from inside');
    child.kill('SIGINT');
    expect((await outcome).code).toBe(0);
    server.close();
  });

  it('explain themselves where there is no sshd', async () => {
    if (existsSync('/usr/sbin/sshd')) return;
    const { code, stderr } = await world.run(['ssh', 'box', '--', 'true']);
    expect(code).toBe(125);
    expect(stderr).toMatch(/no sshd[\s\S]*SBX_CLI_NO_SSHD[\s\S]*sandboxer shell box/);
  });
});

describe('nouns', () => {
  it.each([
    'snapshots --sandbox box',
    'snapshots --limit 3',
    'uploads -n 3',
    'upload list --limit 3',
    'image',
    'image list',
    'volume list',
    'profile show stub-basic',
    'key list',
  ])('a noun alone lists, with options too, and may be singular: %s', async (line) => {
    const { code, stderr } = await world.run(line.split(' '));
    expect({ code, stderr: stderr.replace(/There are no .*\n/, '') }).toEqual({ code: 0, stderr: '' });
  });

  it('a mistyped verb of a noun gets a suggestion', async () => {
    expect((await world.run(['snapshots', '--json', 'shwo'])).stdout).toContain('Did you mean');
    expect((await world.run(['image', 'improt'])).stderr).toContain('Did you mean "import"?');
  });
});

describe('errors', () => {
  it('errors all pass printError', async () => {
    const { code, stderr } = await world.run(['get', 'nowhere']);
    expect(code).toBe(3);
    expect(stderr).toMatch(
      /^error: There is no sandbox "nowhere"\.\n├▶ SBX_NOT_FOUND \(request .*\)\n╰▶ .+\n$/,
    );
    const json = await world.run(['--json', 'get', 'nowhere']);
    expect(JSON.parse(json.stdout)).toMatchObject({ error: { code: 'SBX_NOT_FOUND', status: 404 } });
  });

  it.each([
    [2, ['lst'], 'Did you mean "list"?'],
    [2, ['list', '--jsno'], 'Did you mean --json?'],
    [2, ['profiles', 'shwo', 'x'], 'Did you mean "show"?'],
    [2, ['extend', 'box', 'soon'], 'Write a duration'],
    [2, ['get'], 'missing'],
    [2, ['--url', 'ftp://x', 'list'], 'http://'],
    [3, ['create', '-p', 'no-such-profile'], 'SBX_PROFILE_NOT_FOUND'],
    [4, ['create', '-p', 'stub-basic', '--isolation', 'microvm'], 'SBX_NO_ROUTE'],
    [
      5,
      ['create', '-p', 'stub-basic', '--input', 'fault:={"op":"create","kind":"error_before"}'],
      'SBX_EXTENSION_FAILED',
    ],
    [1, ['--url', 'http://127.0.0.1:1', 'list'], 'SBX_CLI_UNREACHABLE'],
  ])('errors end with %i: %j', async (code, args, text) => {
    const outcome = await world.run(args);
    expect(outcome.stderr.toLowerCase()).toContain(text.toLowerCase());
    expect(outcome.code).toBe(code);
  });
});

describe('catalogue and account', () => {
  it('catalogue and account are shown', async () => {
    expect((await world.run(['profiles'])).stdout).toContain('profile.stub-basic');
    expect(await world.json(['profiles', 'show', 'stub-basic'])).toMatchObject({ available: true });
    expect((await world.run(['extensions'])).stdout).toContain('ext.saas-stub');
    expect(await world.json(['credits'])).toMatchObject({ workspace_id: 'default' });
    expect((await world.run(['credits', 'history'])).stdout).toContain('grant');
    expect((await world.run(['inspect', 'host'])).stdout).toMatch(/^host +local$/m);
    expect((await world.run(['inspect', 'host', 'nobody'])).code).toBe(3);
    expect((await world.run(['inspect', 'stale'])).code).toBe(0);
    expect(await world.json(['hosts'])).toMatchObject({ items: [{ id: 'local', source: 'server' }] });
    for (const command of [['budgets'], ['credits', 'reconcile']]) {
      expect(await world.json(command)).toMatchObject({ items: [] });
    }
    expect(await world.json(['credits', 'audit'])).toMatchObject({ findings: [] });
    expect(await world.json(['doctor'])).toMatchObject({ ok: true });
    expect(await world.json(['version'])).toMatchObject({ server: { api_version: 1 } });
    for (const shell of ['bash', 'zsh', 'fish']) {
      expect((await world.run(['completion', shell])).stdout).toContain(' complete -- ');
    }
  });

  it('lists show the workspace where a key sees several', async () => {
    expect((await world.run(['list'])).stdout).not.toContain('WORKSPACE');
    await world.json(['workspaces', 'create', 'elsewhere', '--org', 'default']);
    const there = ['--workspace', 'elsewhere'];
    await world.json([...there, 'credits', 'grant', '1']);
    await world.json([...there, 'create', '-p', 'stub-basic', '--id', 'distant']);
    const { stdout } = await world.run(['list']);
    expect(stdout).toMatch(/^ID +WORKSPACE +STATE/);
    expect(stdout).toMatch(/^distant +elsewhere +ready/m);
    expect(stdout).toMatch(/^box +default +/m);
    expect((await world.run([...there, 'list'])).stdout).not.toContain('WORKSPACE');
    await world.run(['destroy', 'distant']);
  });

  it('profiles can be pushed', async () => {
    const file = join(world.directory, 'mine.yaml');
    writeFileSync(
      file,
      'id: profile.stub-mine\nversion: "1.0.0"\nextension: ext.saas-stub\nisolation: { level: none }\nnetwork: { default: allow }\n',
    );
    expect((await world.run(['profiles', 'push', file])).stdout).toBe('profile.stub-mine@1.0.0\n');
    writeFileSync(file, 'id: profile.stub-mine\nversion: "1.0.0"\nttl: { default: soon }\n');
    expect((await world.run(['profiles', 'push', file])).code).toBe(4);
  });

  it('setup output is shown, and why setup failed', async () => {
    const file = join(world.directory, 'fragile.yaml');
    writeFileSync(
      file,
      'id: profile.stub-fragile\nversion: "1.0.0"\nextension: ext.saas-stub\nisolation: { level: none }\nnetwork: { default: allow }\nsetup: { run: ["echo installing", "echo no such package; exit 3"] }\n',
    );
    await world.run(['profiles', 'push', file]);
    const failed = await world.run(['create', '-p', 'stub-fragile', '--id', 'fragile']);
    expect(failed.stderr).toContain('sandboxer logs --setup');
    const logs = await world.run(['logs', 'fragile']);
    expect(logs).toMatchObject({ code: 0, stdout: 'installing\nno such package\n' });
    expect(logs.stderr).toMatch(
      /^\$ echo installing\ndone after \S+\n\$ echo no such package; exit 3\nended with 3 after \S+\n$/,
    );
    expect(await world.run(['logs', 'box', '--setup'])).toMatchObject({ code: 3 });
  });

  it('an invalid profile is refused', async () => {
    const file = join(world.directory, 'mine.yaml');
    expect((await world.run(['profiles', 'push', file])).code).toBe(4);
  });

  it('keys that the command makes work over TCP', async () => {
    const stateDir = world.folder('served');
    const server = world.start(['serve', '--listen', '127.0.0.1:0', '--state-dir', stateDir], {});
    const outcome = outcomeOf(server);
    const [line] = (await once(server.stdout as NodeJS.ReadableStream, 'data')) as [string];
    const { tcp, admin_key_file } = JSON.parse(line) as { tcp: string; admin_key_file: string };
    expect((await world.run(['--url', tcp, 'list'])).code).toBe(4);
    const key = readFileSync(admin_key_file, 'utf8').trim();
    const remote = { env: { SANDBOXER_URL: tcp, SANDBOXER_KEY: key } };
    expect(await world.json(['list'], remote)).toEqual({ items: [], next_cursor: null });
    const { secret, key_id } = await world.json<{ secret: string; key_id: string }>(
      ['keys', 'create', 'reader', '--scope', 'read'],
      remote,
    );
    const reader = { env: { SANDBOXER_URL: tcp, SANDBOXER_KEY: secret } };
    expect((await world.run(['list'], reader)).code).toBe(0);
    expect((await world.run(['create', '-p', 'stub-basic'], reader)).code).toBe(4);
    await world.json(['keys', 'revoke', key_id], remote);
    expect((await world.run(['list'], reader)).code).toBe(4);
    server.kill('SIGTERM');
    expect((await outcome).code).toBe(0);
    expect(
      await new Promise((resolve) =>
        createConnection(Number(new URL(tcp).port))
          .on('error', () => resolve('closed'))
          .on('connect', () => resolve('open')),
      ),
    ).toBe('closed');
  });
});
