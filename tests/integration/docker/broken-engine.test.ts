/** An engine that hangs, breaks off or answers nonsense: bounded in time and memory, typed, and nothing is left behind. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { SandboxerError } from '../../../src/contract/errors/errors.ts';
import { DockerWorld, output } from '../../support/docker-world.ts';
import type { Dockerd } from '../../support/dockerd.ts';
import { startDockerd, whyNoDockerd } from '../../support/dockerd.ts';
import { answer, EngineProxy, flood, stall } from '../../support/engine-proxy.ts';

const whyNot = whyNoDockerd();
const TIMEOUT_MS = 5_000;

describe.skipIf(whyNot !== null)(
  `a broken engine${whyNot ? ` (${whyNot})` : ''}`,
  { timeout: 120_000 },
  () => {
    let engine: Dockerd;
    let proxy: EngineProxy;
    let world: DockerWorld;

    beforeAll(async () => {
      engine = await startDockerd();
      proxy = new EngineProxy(engine.socket, join(engine.directory, 'proxy.sock'));
      await proxy.open();
      world = new DockerWorld(engine, { url: `unix://${proxy.socket}`, timeoutMs: TIMEOUT_MS });
      await world.open();
      await world.end(await world.establish());
    });
    afterEach(() => {
      proxy.rule = () => null;
    });
    afterAll(async () => {
      proxy.close();
      await world.close();
    });

    async function refused(work: Promise<unknown>): Promise<SandboxerError> {
      const error = await work.then(
        () => null,
        (thrown: unknown) => thrown,
      );
      expect(error).toBeInstanceOf(SandboxerError);
      return error as SandboxerError;
    }

    const on = (pattern: RegExp, treatment: ReturnType<EngineProxy['rule']>) => {
      proxy.rule = (line) => (pattern.test(line) ? treatment : null);
    };

    it('a create that is never answered may have happened, and is swept', async () => {
      const spec = world.spec();
      on(/^POST .*\/containers\/create/, stall);
      const error = await refused(world.extension.provision(spec, world.context));
      expect(error.code).toBe('SBX_TIMEOUT');
      expect(error.extras.creation).toBe('maybe_created');
      proxy.rule = () => null;
      const report = await world.extension.teardown({ stamp: spec.stamp, handle: null }, world.context);
      expect(report.gone).toBe(true);
    });

    it('a create whose answer is lost is found again by its name', async () => {
      const spec = world.spec();
      proxy.rule = (line) =>
        /^POST .*\/containers\/create/.test(line)
          ? (incoming) => {
              // It reaches the engine; only what it says does not come back.
              const parts: Buffer[] = [];
              incoming.on('data', (part: Buffer) => parts.push(part));
              incoming.on('end', () => {
                void fetchUnix(engine.socket, incoming.url ?? '', Buffer.concat(parts)).then(() =>
                  incoming.socket.destroy(),
                );
              });
            }
          : null;
      const error = await refused(world.extension.provision(spec, world.context));
      expect(error.extras.creation).toBe('maybe_created');
      proxy.rule = () => null;
      const living = await world.reach(spec, await world.extension.provision(spec, world.context));
      expect(await output(living.session, 'echo there')).toBe('there');
      expect(await world.owned()).toEqual([spec.stamp.attemptId]);
      await world.end(living);
    });

    it('a start that hangs fails in time, and a later provision takes the created one up', async () => {
      const spec = world.spec();
      on(/^POST .*\/start$/, stall);
      const handle = await world.extension.provision(spec, world.context);
      expect((await refused(world.extension.waitReady(handle, world.context))).code).toBe('SBX_TIMEOUT');
      proxy.rule = () => null;
      await world.restart();
      const living = await world.reach(spec, await world.extension.provision(spec, world.context));
      expect(await output(living.session, 'echo up')).toBe('up');
      await world.end(living);
    });

    it('an abort is honoured while the engine hangs', async () => {
      on(/^POST .*\/containers\/create/, stall);
      const abort = new AbortController();
      setTimeout(() => abort.abort(), 100);
      const begun = performance.now();
      const error = await refused(world.extension.provision(world.spec(), world.contextWith(abort.signal)));
      expect(error.code).toBe('SBX_CANCELLED');
      expect(performance.now() - begun).toBeLessThan(TIMEOUT_MS);
    });

    it('a teardown that hangs is an error, and success once it was repeated', async () => {
      const living = await world.establish();
      on(
        /^DELETE .*\/containers\//,
        answer(500, '{"message":"driver \\"overlay2\\" failed: device or resource busy"}'),
      );
      const target = { stamp: living.spec.stamp, handle: living.handle };
      const error = await refused(world.extension.teardown(target, world.context));
      expect(error.detail).toContain('device or resource busy');
      on(/^GET .*\/containers\/sbx/, stall);
      expect((await refused(world.extension.teardown(target, world.context))).code).toBe('SBX_TIMEOUT');
      proxy.rule = () => null;
      expect((await world.extension.teardown(target, world.context)).gone).toBe(true);
    });

    it('a full disk is reported as such', async () => {
      on(/^POST .*\/containers\/create/, answer(500, '{"message":"mkdir /x: no space left on device"}'));
      const error = await refused(world.extension.provision(world.spec(), world.context));
      expect(error.code).toBe('SBX_BACKEND_QUOTA');
      expect(error.extras.creation).toBe('not_created');
    });

    it('endless and nonsensical answers are cut off', async () => {
      const listing = /^GET .*\/containers\/json/;
      const nonsense: ReturnType<EngineProxy['rule']>[] = [
        flood('[', '{"Id":"a","Names":["/sbx.x.y.z"],"Created":1,"Labels":{}},'),
        answer(200, '{"not":"a list"}'),
        answer(200, '[{"Id":7}]'),
        answer(200, '<html>'),
        answer(200, `[${'['.repeat(5_000)}`),
        answer(200, ''),
        answer(500, `{"message":"${'x'.repeat(100_000)}"}`),
      ];
      for (const treatment of nonsense) {
        on(listing, treatment);
        const error = await refused(world.owned());
        expect(error.detail.length).toBeLessThan(700);
      }
    });

    it('containers that a broken engine lists beyond ours are not believed', async () => {
      const labels = { 'io.sandboxer.owner': world.owner };
      const names = ['/sbx.docker-tests.a', '/sbx.other.u.a', '/../../etc', '/sbx.docker-tests.u.a_zz', '/x'];
      const body = names.map((name) => ({ Id: 'i', Names: [name], Created: 1, Labels: labels }));
      const strange = {
        Id: 'i',
        Names: ['/sbx.docker-tests.u.b'],
        Created: 1,
        Labels: { 'io.sandboxer.owner': 'x' },
      };
      on(/^GET .*\/containers\/json/, answer(200, JSON.stringify([...body, strange])));
      const found = await world.owned();
      expect(found.every((attempt) => !attempt.includes('/'))).toBe(true);
      expect(found).not.toContain('b');
    });

    it('a door that leads elsewhere is not followed', async () => {
      const living = await world.establish();
      const real = JSON.stringify(await world.inspect(living));
      await living.session.close();
      await world.restart();
      const lying = JSON.parse(real);
      lying.Config.Labels['io.sandboxer.door'] = '../led-astray';
      on(/^GET .*\/containers\/sbx/, answer(200, JSON.stringify(lying)));
      const error = await refused(world.extension.connect(living.handle, world.context));
      expect(error.code).toBe('SBX_BACKEND_LOST');
      expect(existsSync(join(world.options.directory, '..', 'led-astray'))).toBe(false);
      proxy.rule = () => null;
      await world.end(living);
    });

    it('the probe says what is wrong, and how to mend it', async () => {
      const probe = async (rule: EngineProxy['rule']) => {
        proxy.rule = rule;
        const fresh = new DockerWorld(engine, { url: `unix://${proxy.socket}`, timeoutMs: TIMEOUT_MS });
        await fresh.open();
        const health = await fresh.extension.probe(fresh.context);
        await fresh.extension.close();
        return health;
      };
      const hung = await probe(() => stall);
      expect(hung).toMatchObject({ status: 'unhealthy', checks: [{ fix: 'systemctl restart docker' }] });
      const old = await probe((line) =>
        line.includes('_ping')
          ? (incoming, response) => {
              incoming.resume();
              response.writeHead(200, { 'api-version': '1.40' }).end('OK');
            }
          : null,
      );
      expect(old.status).toBe('undetected');
      expect(old.detail).toContain('20.10');
      const other = await probe(() => answer(200, 'hello', 'text/plain'));
      expect(other.status).toBe('unhealthy');
    });
  },
);

async function fetchUnix(socketPath: string, path: string, body: Buffer): Promise<void> {
  const { request } = await import('node:http');
  await new Promise<void>((resolve, reject) => {
    const outgoing = request(
      {
        socketPath,
        method: 'POST',
        path,
        headers: { 'content-type': 'application/json', 'content-length': body.length },
      },
      (response) => {
        response.resume();
        response.on('end', resolve);
      },
    );
    outgoing.on('error', reject);
    outgoing.end(body);
  });
}
