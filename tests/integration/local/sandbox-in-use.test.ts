/** What happens to programs, and to whoever follows them, when something happens to their sandbox. */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, describe, expect, it } from 'vitest';
import type { ExecInput } from '../../../src/contract/sandboxes/exec.ts';
import { LocalServer } from '../../support/local-server.ts';
import { answerTo, send } from '../http/fixture.ts';

let server = await LocalServer.start();
const reason = await server.whyNot();
afterAll(() => server.close());

async function until(look: () => Promise<boolean>): Promise<void> {
  for (let tries = 0; tries < 1_200; tries++) {
    if (await look()) return;
    await sleep(25);
  }
  throw new Error('it did not come to that');
}

async function created(more: Record<string, unknown> = {}): Promise<string> {
  return (await server.client.sandboxes.create({ profile: 'profile.agent-dev', ...more })).sandbox_id;
}

const call = (method: string, path: string, options: Parameters<typeof send>[3] = {}) =>
  answerTo(send({ socketPath: server.running.socketPath as string }, method, path, options));

const exec = (id: string, json: ExecInput, accept = 'application/json') =>
  call('POST', `/v1/sandboxes/${id}/exec`, { json, headers: { accept } });

const runs = (id: string, program: string) => async () =>
  (await server.client.processes.list(id)).some(
    ({ running, command }) => running && command.join(' ') === program,
  );

describe.skipIf(reason !== null)(`a sandbox in use${reason === null ? '' : ` (${reason})`}`, () => {
  it('a sandbox that ends under a program gives the reason, in every form of the answer', async () => {
    const id = await created();
    const sleeping = { command: ['sleep', '100'] };
    const whole = exec(id, sleeping);
    const lines = exec(id, sleeping, 'application/x-ndjson');
    const open = await server.client.interactive(id, sleeping);
    const interactive = (async () => {
      for await (const _ of open);
    })();
    const refused = expect(interactive).rejects.toMatchObject({ code: 'SBX_GONE' });
    await until(runs(id, 'sleep 100'));
    await server.client.sandboxes.destroy(id);
    const gone = { code: 'SBX_GONE', status: 410, retryable: false };
    expect((await whole).json).toMatchObject({ ...gone, detail: expect.stringContaining('was destroyed') });
    const last = JSON.parse((await lines).text.trim().split('\n').at(-1) as string);
    expect(last).toMatchObject({ type: 'error', problem: gone });
    await refused;
  });

  it('a sandbox whose time is up, or that is recreated, gives the reason as well', async () => {
    const short = await created({ ttl: '3s' });
    expect((await exec(short, { command: ['sleep', '100'] })).json).toMatchObject({
      code: 'SBX_GONE',
      detail: expect.stringContaining('ttl'),
      remedy: expect.stringContaining('extend'),
    });
    const again = await created();
    const running = exec(again, { command: ['sleep', '100'] });
    await until(runs(again, 'sleep 100'));
    await server.client.sandboxes.recreate(again);
    expect((await running).json).toMatchObject({
      code: 'SBX_GONE',
      detail: expect.stringContaining('recreated'),
      remedy: expect.stringContaining('again'),
    });
  });

  it('a sandbox in use takes as many arguments as the agent does, and refuses more', async () => {
    const id = await created();
    const count = (args: number) =>
      exec(id, { command: ['sh', '-c', 'echo $#', 'sh', ...Array.from({ length: args }, () => 'x')] });
    expect((await count(30_000)).json).toMatchObject({ stdout: '30000\n', exit: { code: 0 } });
    expect((await count(40_000)).json).toMatchObject({
      code: 'SBX_INVALID_REQUEST',
      field: 'command',
      detail: expect.stringContaining('32768'),
    });
  });

  it('input of a program in the background: given, kept open, or refused', async () => {
    const id = await created();
    const started = async (request: Omit<ExecInput, 'background'>) => {
      const { status, json } = await exec(id, { ...request, background: true });
      expect(status).toBe(202);
      return `/v1/sandboxes/${id}/processes/${json.process_id}`;
    };
    const output = async (process: string) => {
      const { text } = await call('GET', `${process}/output`, {
        headers: { accept: 'application/x-ndjson' },
      });
      const items = text
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line));
      const written = items.map(({ type, data }) => (type === 'stdout' || type === 'terminal' ? data : ''));
      return { written: written.join(''), end: items.at(-1) };
    };
    const write = (process: string, body: string, query = '') =>
      call('POST', `${process}/stdin${query}`, {
        body,
        headers: { 'content-type': 'application/octet-stream' },
      });

    const given = await started({ command: ['cat'], stdin: 'given' });
    expect(await output(given)).toMatchObject({ written: 'given', end: { type: 'exit', exit: { code: 0 } } });
    const large = await started({ command: 'sleep 1; wc -c', stdin: 'x'.repeat(3_000_000) });
    const { written, end } = await output(large);
    expect(written.trim()).toBe('3000000');
    const replayed = await output(large);
    expect(replayed.end.duration_ms).toBeGreaterThan(900);
    expect(end.duration_ms).toBeGreaterThan(900);

    const kept = await started({ command: ['cat'], stdin: 'one ', stdin_open: true });
    expect((await write(kept, 'two ')).status).toBe(204);
    expect((await write(kept, 'three', '?end=true')).status).toBe(204);
    expect((await output(kept)).written).toBe('one two three');

    const shell = await started({ command: ['bash'], tty: { cols: 80, rows: 24 } });
    expect((await write(shell, 'echo $((6*7))\nexit 3\n')).status).toBe(204);
    const session = await output(shell);
    expect(session.written).toContain('42');
    expect(session.end).toMatchObject({ exit: { code: 3 } });

    const closed = await started({ command: ['sleep', '100'] });
    for (const process of [closed, shell]) {
      expect((await write(process, 'in vain')).json).toMatchObject({
        code: 'SBX_INVALID_STATE',
        status: 409,
        remedy: expect.stringContaining('stdin_open'),
      });
    }
  });

  it('a program that runs in the background is use, also to the next server', async () => {
    await server.client.profiles.push({
      id: 'profile.fleeting',
      version: '1.0.0',
      extension: 'ext.local',
      ttl: { default: '1h', max: '2h', idle_reap: '2s' },
    });
    const busy = await created({ profile: 'profile.fleeting' });
    const idle = await created({ profile: 'profile.fleeting' });
    const { process_id } = await server.client.background(busy, { command: ['sleep', '1000'] });
    const state = async (id: string) => (await server.client.sandboxes.get(id)).state;
    const over = (id: string) => async () => ['expired', 'destroying', 'destroyed'].includes(await state(id));
    await until(over(idle));
    await sleep(3_000);
    expect(await state(busy)).toBe('active');
    await server.stop();
    await sleep(3_000);
    server = await LocalServer.start(undefined, server.dir);
    await sleep(1_000);
    expect(await state(busy)).toBe('active');
    await server.client.processes.kill(busy, process_id);
    await until(over(busy));
  });
});
