/** The engine that other tests stand on: two at once, each alone, and nothing is left of them. */
import { readdirSync, readFileSync } from 'node:fs';
import { afterAll, describe, expect, it } from 'vitest';
import type { Dockerd } from '../../support/dockerd.ts';
import { startDockerd, whyNoDockerd } from '../../support/dockerd.ts';

const whyNot = whyNoDockerd();
const engines: Dockerd[] = [];
afterAll(async () => {
  for (const engine of engines) await engine.close();
});

async function pageAt(url: string): Promise<string> {
  return await fetch(url).then(
    (response) => response.text(),
    (error) => String(error),
  );
}

describe.skipIf(whyNot !== null)(`a docker engine of our own${whyNot ? ` (${whyNot})` : ''}`, () => {
  it('a private docker engine runs beside another one and leaves nothing behind', async () => {
    const [one, two] = await Promise.all([startDockerd(), startDockerd({ link: true })]);
    engines.push(one, two);
    expect(await one.docker('run', '--rm', one.image, 'id', '-u')).toBe('0');
    const serve = 'mkdir /www; echo from inside >/www/index.html; exec httpd -f -p 80 -h /www';
    const id = await two.docker('run', '-d', '-p', '8080:80', two.image, 'sh', '-c', serve);
    expect(await one.docker('ps', '-q')).toBe('');
    expect(await two.docker('ps', '-q', '--no-trunc')).toBe(id);
    await expect
      .poll(() => pageAt(`http://${two.address}:8080/`), { timeout: 60_000 })
      .toContain('from inside');
    const directories = [one.directory, two.directory];
    for (const engine of engines.splice(0)) await engine.close();
    expect(readFileSync('/proc/self/mountinfo', 'utf8')).not.toContain('sbx-dockerd-');
    for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
      let command = '';
      try {
        command = readFileSync(`/proc/${pid}/cmdline`, 'utf8');
      } catch {}
      for (const directory of directories) expect(command).not.toContain(directory);
    }
  });

  it('a private docker engine keeps containers over a restart with live-restore', async () => {
    const engine = await startDockerd({ config: { 'live-restore': true } });
    engines.push(engine);
    const id = await engine.docker('run', '-d', engine.image, 'sleep', '1000');
    const pid = await engine.docker('inspect', '-f', '{{.State.Pid}}', id);
    await engine.restartDaemon('SIGKILL');
    expect(await engine.docker('inspect', '-f', '{{.State.Pid}}', id)).toBe(pid);
    await engine.docker('rm', '-f', id);
  });
});
