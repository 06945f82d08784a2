/** docs/guides/docker.md as it stands: its configuration and its profile, on a real engine, over HTTP. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import { SandboxerClient } from '../../../src/client/sandboxer-client.ts';
import { loadConfig } from '../../../src/main/config/config.ts';
import { serve } from '../../../src/main/serve.ts';
import { fencedBlocks } from '../../docs/fenced-blocks.ts';
import { removeDir, temporaryDir } from '../../support/child-server.ts';
import { startDockerd, whyNoDockerd } from '../../support/dockerd.ts';

const whyNot = whyNoDockerd();
const guide = readFileSync(join(import.meta.dirname, '../../../docs/guides/docker.md'), 'utf8');
const blocks = fencedBlocks(guide).filter(({ language }) => language === 'yaml');
const [configuration, profile, tls, ssh, logins] = blocks.map(({ text }) => parse(text));

it('every configuration in the guide is valid', () => {
  const dir = temporaryDir();
  try {
    for (const [at, document] of [configuration, tls, ssh, logins].entries()) {
      const path = join(dir, `${at}.yaml`);
      writeFileSync(path, stringify(document));
      const { docker } = loadConfig({ SANDBOXER_CONFIG: path, SANDBOXER_STATE_DIR: dir }).extensions;
      if (document.extensions.docker.url) expect(docker?.url).toBe(document.extensions.docker.url);
    }
  } finally {
    removeDir(dir);
  }
});

describe.skipIf(whyNot !== null)(`the guide to Docker${whyNot ? ` (${whyNot})` : ''}`, () => {
  it('the guide to Docker works as written', async () => {
    const engine = await startDockerd();
    const dir = temporaryDir();
    const path = join(dir, 'config.yaml');
    const url = `unix://${engine.socket}`;
    const { docker } = configuration.extensions;
    writeFileSync(
      path,
      stringify({ extensions: { ...configuration.extensions, docker: { ...docker, url } } }),
    );
    const env = {
      SANDBOXER_STATE_DIR: dir,
      SANDBOXER_CONFIG: path,
      SANDBOXER_LOG_LEVEL: 'silent',
      SANDBOXER_LOCAL: '0',
    };
    const server = await serve({ config: loadConfig(env), env });
    const client = new SandboxerClient({ url: `unix:${server.socketPath}` });
    try {
      const { items } = await client.extensions.list();
      expect(items.find(({ id }) => id === 'ext.docker')?.health.status).toBe('healthy');
      await client.profiles.push(profile);
      const made = await client.sandboxes.create({ profile: profile.id });
      const { stdout } = await client
        .exec(made.sandbox_id, { command: 'pwd; id -u; echo kept > file' })
        .result();
      expect(stdout).toBe('/workspace\n1000\n');
      const copy = await client.sandboxes.fork(made.sandbox_id);
      const read = await client.exec(copy.sandbox_id, { command: 'cat file' }).result();
      expect(read.stdout).toBe('kept\n');
      const refused = client.sandboxes.create({ profile: profile.id, image: 'not/listed:1' });
      await expect(refused).rejects.toMatchObject({ status: expect.any(Number) });
      for (const { sandbox_id } of [made, copy]) await client.sandboxes.destroy(sandbox_id);
    } finally {
      client.close();
      await server.stop();
      expect(await engine.docker('ps', '-aq')).toBe('');
      await engine.close();
      removeDir(dir);
    }
  });
});
