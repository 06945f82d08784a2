/** The attempts in sandboxes of ext.local where the server is an ordinary user of the machine. */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, it } from 'vitest';
import { hostCanary } from '../../src/extensions/local/host/host-canary.ts';
import { noOrdinaryUser, OrdinaryUser } from '../support/ordinary-user.ts';

const RUN = join('tests', 'security', 'attempts', 'rootless-run.ts');
const reason = noOrdinaryUser();
const ROOT_AND_USER = [
  { user: 'user', setting: 'rootlessUser' },
  { user: 'root', setting: 'rootlessRoot' },
];
const ONE_USER = [{ user: null, setting: 'oneId' }];

const title = `attempts in ext.local, rootless${reason === null ? '' : ` (${reason})`}`;
describe.skipIf(reason !== null)(title, { concurrent: true }, () => {
  it.for([
    { how: 'with subordinate ids', subordinate: true, triers: ROOT_AND_USER },
    { how: 'with one id', subordinate: false, triers: ONE_USER },
  ])('attempts: each ends as the documents say, $how', async ({ subordinate, triers }, { expect }) => {
    const user = new OrdinaryUser({ subordinate });
    const base = join(user.tmp, 'local');
    const before = hostCanary(base);
    const { code, stdout, stderr } = await user.run([
      user.node,
      join(user.clone, RUN),
      JSON.stringify(triers),
    ]);
    expect(code, stderr).toBe(0);
    const none = Object.fromEntries(triers.map(({ setting }) => [setting, []]));
    expect(JSON.parse(stdout)).toEqual({ reason: null, ...none });
    for (let tries = 0; tries < 200 && user.processes().length > 0; tries++) await sleep(50);
    expect(user.processes()).toEqual([]);
    expect(hostCanary(base)).toBe(before);
    user.remove();
  });
});
