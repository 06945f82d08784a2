/** A sandbox that failed under an id of the client's, asked for again. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { ResolvedConfig } from '../../../src/main/config/config.ts';
import { LocalServer } from '../../support/local-server.ts';

const vault = mkdtempSync(join(tmpdir(), 'sbx-vault-'));
const withVault = ({ secrets }: ResolvedConfig) => ({ secrets: { ...secrets, directory: vault } });
const server = await LocalServer.start(withVault);
const reason = await server.whyNot();
afterAll(async () => {
  await server.close();
  rmSync(vault, { recursive: true });
});

describe.skipIf(reason !== null)(`a failed sandbox${reason === null ? '' : ` (${reason})`}`, () => {
  it('a failed sandbox is retried by the same request, and reported again by the same key', async () => {
    const { client } = server;
    const setup = { secret_refs: [{ name: 'TOKEN', provider: 'file', delivery: 'env' as const }] };
    await client.profiles.push({
      id: 'profile.armed',
      version: '1.0.0',
      extension: 'ext.local',
      setup,
    });
    const request = { profile: 'profile.armed', id: 'armed' };
    const create = (idempotencyKey: string) => client.sandboxes.create(request, { idempotencyKey });
    const unresolved = { code: 'SBX_SECRET_UNRESOLVED' };
    await expect(create('first')).rejects.toMatchObject(unresolved);
    await expect(create('second')).rejects.toMatchObject(unresolved);
    writeFileSync(join(vault, 'TOKEN'), 'there', { mode: 0o600 });
    await expect(create('first')).rejects.toMatchObject({
      ...unresolved,
      problem: { failed_at: expect.stringMatching(/^\d{4}-/) },
    });
    const [one, other] = await Promise.all([create('third'), create('fourth')]);
    expect(one).toMatchObject({ sandbox_id: 'armed', state: 'ready' });
    expect(other.uid).toBe(one.uid);
    expect(await server.inside('armed', 'echo $TOKEN')).toBe('there\n');
    await expect(client.sandboxes.create({ ...request, ttl: '5m' })).rejects.toMatchObject({
      code: 'SBX_ID_TAKEN',
    });
  });
});
