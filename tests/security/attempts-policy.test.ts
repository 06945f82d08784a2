/** The attempts at the level `policy` of ext.ssh: rules around the processes of an ordinary user of the host. */
import { readFileSync, rmSync } from 'node:fs';
import { machine } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ExtensionContext, Handle, ProvisionSpec } from '../../src/core/ports/extension.ts';
import { NO_INPUTS } from '../../src/core/ports/inputs.ts';
import { silentLog } from '../../src/core/ports/log.ts';
import type { SandboxSession } from '../../src/core/ports/session.ts';
import { hostCanary } from '../../src/extensions/local/host/host-canary.ts';
import { CAPABILITIES } from '../../src/extensions/ssh/config.ts';
import { createSshExtension } from '../../src/extensions/ssh/create.ts';
import { bytesFrom } from '../../src/testing/conformance/bytes.ts';
import { defaultRecipe } from '../../src/testing/conformance/default-recipe.ts';
import type { SshServer } from '../../src/testing/ssh-server.ts';
import { sshServerMissing } from '../../src/testing/ssh-server.ts';
import { PLAIN_UID, startPlainUserServer, whyNoPlainUser } from '../support/plain-user-server.ts';
import { builtProbe, offerHere, surprises, tryInside } from './attempts/probe-runs.ts';

const AGENT = join(import.meta.dirname, '..', '..', 'agent', 'build', 'sandboxer-agent');
const BASE = '/nothing-of-ours';
/** The same user as inside: only the rules stand between. */
const AS_PLAIN = ['setpriv', `--reuid=${PLAIN_UID}`, `--regid=${PLAIN_UID}`, '--clear-groups'];
const { path, whyNot } = builtProbe();
const reason = whyNot ?? sshServerMissing() ?? whyNoPlainUser();

describe.skipIf(reason !== null)(`attempts at policy${reason === null ? '' : ` (${reason})`}`, () => {
  const extension = createSshExtension({ agents: { [machine()]: AGENT } });
  const before = hostCanary(BASE);
  const stamp = { sandboxUid: 'u', attemptId: 'attempts', owner: 'tests' };
  let context: ExtensionContext;
  let server: SshServer;
  let handle: Handle;
  let session: SandboxSession;

  beforeAll(async () => {
    server = await startPlainUserServer();
    const clock = { now: () => Date.now(), sleep: async (ms: number) => void (await sleep(ms)) };
    const host = { id: 'h1', labels: {}, ssh: server.access() };
    context = { signal: new AbortController().signal, clock, log: silentLog, host };
    const spec: ProvisionSpec = {
      stamp,
      sandboxId: 'u',
      workspaceId: 'w',
      generation: 1,
      recipe: { ...defaultRecipe(CAPABILITIES), isolation: 'policy' },
      labels: {},
      secrets: [],
      inputs: NO_INPUTS,
      endsAt: Date.now() + 600_000,
    };
    handle = await extension.provision(spec, context);
    session = await extension.connect(handle, context);
  });

  afterAll(async () => {
    await session?.close();
    await extension.teardown({ stamp, handle }, context);
    await extension.close();
    await server?.stop();
    rmSync(dirname(path), { recursive: true });
    expect(hostCanary(BASE)).toBe(before);
  });

  it('attempts: each ends as the documents say', async () => {
    await session.files?.write('probe', bytesFrom(readFileSync(path)), { mode: 0o755 });
    const [host, other] = [await offerHere(path, AS_PLAIN), await offerHere(path, AS_PLAIN)];
    const offers = { HOST: host.offer, OTHER: other.offer, OWN: host.offer };
    const tried = await tryInside({ session, probe: './probe', user: null }, offers);
    await Promise.all([host.stop(), other.stop()]);
    expect(surprises(tried, 'policy')).toEqual([]);
  });
});
