import { once } from 'node:events';
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { CliWorld } from './cli-world.ts';

let world: CliWorld;
beforeEach(async () => {
  world = await CliWorld.open();
});
afterEach(() => world.close());

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

async function gone(pid: number): Promise<void> {
  for (let n = 0; n < 1200 && isAlive(pid); n += 1) await new Promise((resolve) => setTimeout(resolve, 25));
  expect(isAlive(pid)).toBe(false);
}

describe('the daemon', () => {
  it('the daemon is started once, however many commands ask for it at the same time', async () => {
    const outcomes = await Promise.all(Array.from({ length: 20 }, () => world.run(['list', '--json'])));
    for (const outcome of outcomes)
      expect(outcome).toMatchObject({ code: 0, stdout: '{"items":[],"next_cursor":null}\n' });
    const log = readFileSync(join(world.stateDir, 'daemon.log'), 'utf8');
    expect(log.split('\n').filter((line) => line.startsWith('{"ready":true'))).toHaveLength(1);
    expect(statSync(join(world.stateDir, 'daemon.json')).mode & 0o777).toBe(0o600);
    expect(statSync(world.stateDir).mode & 0o777).toBe(0o700);
    expect(statSync(join(world.stateDir, 'sandboxer.sock')).mode & 0o777).toBe(0o600);
    expect(existsSync(join(world.stateDir, 'daemon.lock'))).toBe(false);
  });

  it('the daemon is replaced when its version differs, and the sandboxes live on', async () => {
    await world.json(['credits', 'grant', '1']);
    await world.json(['create', '-p', 'stub-basic', '--id', 'survivor']);
    const before = world.daemonPid() as number;
    const file = join(world.stateDir, 'daemon.json');
    const record = JSON.parse(readFileSync(file, 'utf8'));
    writeFileSync(file, JSON.stringify({ ...record, version: '0.0.1' }));
    expect((await world.run(['exec', 'survivor', 'echo', 'still here'])).stdout).toBe('still here\n');
    expect(world.daemonPid()).not.toBe(before);
    await gone(before);
    await world.run(['rm', 'survivor']);
  });

  it('the daemon is started anew after a crash, whatever it left behind', async () => {
    await world.run(['list']);
    const crashed = world.daemonPid() as number;
    process.kill(crashed, 'SIGKILL');
    await gone(crashed);
    expect(existsSync(join(world.stateDir, 'sandboxer.sock'))).toBe(true);
    expect((await world.run(['list'])).code).toBe(0);
    expect(world.daemonPid()).not.toBe(crashed);
  });

  it('the daemon gets a streamed body as a whole, also when the body waits for its start', async () => {
    writeFileSync(join(world.folder('work/tree'), 'a.txt'), 'A');
    const upload = await world.json<{ upload_id: string; entries: number }>(['uploads', 'create', 'tree']);
    expect(upload.entries).toBe(1);
    expect((await world.run(['uploads', 'entries', upload.upload_id])).stdout).toBe('a.txt\n');
  });

  it('the daemon never signals another process that got the number of a dead daemon', async () => {
    await world.run(['list']);
    const file = join(world.stateDir, 'daemon.json');
    const record = JSON.parse(readFileSync(file, 'utf8'));
    process.kill(record.pid, 'SIGKILL');
    await gone(record.pid);
    const stranger = world.start(['serve', '--state-dir', world.folder('other')]);
    await once(stranger.stdout as NodeJS.ReadableStream, 'data');
    writeFileSync(file, JSON.stringify({ ...record, version: '0.0.1', pid: stranger.pid }));
    expect((await world.run(['list'])).code).toBe(0);
    expect(stranger.exitCode).toBeNull();
    stranger.kill('SIGTERM');
    await once(stranger, 'close');
  });

  it('a daemon that did not start gives the reason', async () => {
    writeFileSync(join(world.directory, 'config.yaml'), 'lissten: {}\n');
    const { code, stderr } = await world.run(['list']);
    expect(code).toBe(1);
    expect(stderr).toMatch(
      /did not start: The configuration file .*config\.yaml: lissten: there is no such setting\n.*SBX_CONFIG_INVALID\n.*Did you mean "listen"\?.*daemon\.log/,
    );
    expect(stderr).not.toMatch(/^ +at /m);
    const doctor = await world.run(['doctor', '--json']);
    expect(doctor.code).toBe(1);
    expect(JSON.parse(doctor.stdout).checks).toContainEqual(
      expect.objectContaining({ name: 'server', status: 'failed' }),
    );
    const long = await world.run(['list'], { env: { SANDBOXER_SOCKET: `/tmp/${'x'.repeat(120)}.sock` } });
    expect(long.stderr).toContain('SANDBOXER_SOCKET');
    const places = [[join(world.directory, 'config.yaml', 'state'), 'list']];
    if (process.platform === 'linux') places.push(['/proc/nowhere', 'list'], ['/proc', 'serve']);
    for (const [SANDBOXER_STATE_DIR = '', command = ''] of places) {
      const nowhere = await world.run([command], { env: { SANDBOXER_STATE_DIR, SANDBOXER_CONFIG: '' } });
      expect(nowhere.stderr).toContain('Set SANDBOXER_STATE_DIR to');
    }
  });

  it('the daemon stops by itself when it has no use, and not before', async () => {
    const config = join(world.directory, 'config.yaml');
    const before = readFileSync(config, 'utf8');
    writeFileSync(config, JSON.stringify({ ...JSON.parse(before), daemon: { stop_after: '1s' } }));
    await world.json(['credits', 'grant', '1']);
    await world.json(['create', '-p', 'stub-basic', '--id', 'lives']);
    const pid = world.daemonPid() as number;
    await new Promise((resolve) => setTimeout(resolve, 3_000));
    expect(world.daemonPid()).toBe(pid);
    await world.json(['destroy', 'lives']);
    await gone(pid);
    expect(world.daemonPid()).toBeNull();
    expect((await world.run(['get', 'lives'])).stdout).toContain('destroyed');
    writeFileSync(config, before);
    await world.run(['daemon', 'stop']);
  });

  it('the daemon is shown, stopped and restarted', async () => {
    expect((await world.run(['daemon'])).code).toBe(3);
    await world.run(['daemon', 'start']);
    const first = world.daemonPid() as number;
    expect(await world.json(['daemon', 'status'])).toMatchObject({
      running: true,
      answering: true,
      pid: first,
    });
    expect(await world.json(['daemon', 'restart'])).toMatchObject({ running: true });
    expect(world.daemonPid()).not.toBe(first);
    expect(await world.json(['daemon', 'stop'])).toMatchObject({ stopped: true });
    expect(await world.json(['daemon', 'stop'])).toMatchObject({ stopped: false });
  });
});
