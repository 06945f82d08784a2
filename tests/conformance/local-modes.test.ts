/** ext.local with another runtime, and for whoever is not root: it conforms in each mode, and declares what that cannot hold. */
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { afterAll, describe, expect, it } from 'vitest';
import { SpawnerClient } from '../../src/extensions/local/engine/spawner-client.ts';
import { Layout } from '../../src/extensions/local/state/layout.ts';
import { outcomeOf, suiteAs, suiteHere } from '../support/local-suite-report.ts';
import { noOrdinaryUser, OrdinaryUser } from '../support/ordinary-user.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const CONTROLLERS = ['memory', 'pids', 'cpu', 'freezer'];
const reason = noOrdinaryUser();
const LIMIT_MS = 600_000;

if (reason === null) {
  for (const script of ['build-agent.sh', 'build-spawner.sh'])
    spawnSync('sh', [join(ROOT, 'scripts', script)], { stdio: 'inherit' });
}

const users: OrdinaryUser[] = [];
function newUser(subordinate: boolean): OrdinaryUser {
  const user = new OrdinaryUser({ subordinate });
  users.push(user);
  return user;
}

afterAll(async () => {
  // A spawner without sandboxes leaves by itself; an agent that nobody knows of would stay.
  const left = () => users.flatMap((user) => user.processes());
  for (let tries = 0; tries < 300 && left().length > 0; tries++) await setTimeout(200);
  expect(left()).toEqual([]);
  for (const user of users) user.remove();
});

/** As root would for somebody: groups of version 1 that are theirs. Gives back how to take them away. */
function delegate(user: OrdinaryUser): () => void {
  const { group } = new Layout(join(user.tmp, 'local'));
  const places = CONTROLLERS.map((name) => join('/sys/fs/cgroup', name, group));
  for (const place of places) mkdirSync(place);
  execFileSync('chown', ['-R', String(user.uid), ...places]);
  return () => {
    for (const place of places) if (existsSync(place)) rmdirSync(place);
  };
}

const title = `modes${reason === null ? '' : ` (${reason})`}`;
describe.skipIf(reason !== null)(title, { concurrent: true }, () => {
  it(
    'ext.local without ids of its own: one user inside; limits and freezing are not declared, and refused',
    async () => {
      const report = await suiteAs(newUser(false));
      expect(report.capabilities).toMatchObject({ pause: 'stopped', resources: ['open_files'] });
      expect(outcomeOf(report, 'refusal: limits that are not declared')).toBe('passed');
    },
    LIMIT_MS,
  );

  it(
    'ext.local with subordinate ids: root and user inside',
    async () => {
      const report = await suiteAs(newUser(true));
      expect(report.capabilities).toMatchObject({ pause: 'stopped', resources: ['open_files'] });
      expect(outcomeOf(report, 'refusal: limits that are not declared')).toBe('passed');
    },
    LIMIT_MS,
  );

  it.skipIf(!existsSync('/usr/sbin/runc'))(
    'ext.local as root with runc instead of crun: the same bundle, the same promises',
    async () => {
      const directory = mkdtempSync(join(tmpdir(), 'sbx-runc-'));
      try {
        const report = await suiteHere({ directory: join(directory, 'local'), runtime: 'runc' });
        expect(report.capabilities.resources).toEqual(
          expect.arrayContaining([
            'open_files',
            ...(existsSync('/sys/fs/cgroup/freezer') ? ['memory_mb'] : []),
          ]),
        );
      } finally {
        rmSync(directory, { recursive: true, force: true });
      }
    },
    LIMIT_MS,
  );

  it.skipIf(!existsSync('/sys/fs/cgroup/freezer'))(
    'ext.local with control groups that root gave it: limits hold',
    async () => {
      const user = newUser(true);
      const takeBack = delegate(user);
      try {
        const report = await suiteAs(user);
        expect(report.capabilities).toMatchObject({
          pause: 'frozen',
          resources: ['cpu', 'memory_mb', 'pids', 'open_files'],
        });
        expect(outcomeOf(report, 'resources: memory_mb: more is not had')).toBe('passed');
      } finally {
        takeBack();
      }
    },
    LIMIT_MS,
  );
});

describe.skipIf(reason !== null)(
  'the command of a checkout, for an ordinary user with read access alone',
  { concurrent: true },
  () => {
    it.each([true, false])(
      'the command of an unprivileged checkout runs a program, and doctor says in which mode (subordinate ids: %s)',
      async (subordinate) => {
        execFileSync('sh', [join(ROOT, 'sandboxer'), '--version']);
        const user = newUser(subordinate);
        const sandboxer = (...words: string[]) => user.run([join(user.clone, 'sandboxer'), ...words]);
        try {
          const ran = await sandboxer('run', '--', 'sh', '-c', 'echo $(id -u) $(cat /proc/1/comm); exit 3');
          expect(ran, ran.stderr).toMatchObject({ code: 3, stdout: `${subordinate ? 1000 : 0} .init\n` });
          const doctor = await sandboxer('doctor');
          expect(doctor.stdout).toMatch(
            subordinate
              ? new RegExp(
                  `mode +ordinary user: users inside map to your subordinate ids from ${user.firstSubordinate}`,
                )
              : /mode +ordinary user without subordinate ids: one user inside.*usermod --add-subuids/s,
          );
          expect(doctor.stdout).toMatch(/memory controller +memory limits cannot be enforced/);
        } finally {
          await sandboxer('daemon', 'stop');
          const socket = join(user.home, '.local', 'share', 'sandboxer', 'local', 'spawner.sock');
          const spawner = await SpawnerClient.open(socket, () => {}).catch(() => null);
          await spawner?.call('retire').catch(() => {});
          spawner?.close();
        }
      },
    );

    it('sandboxer-spawner --check reports whether the kernel gives what a sandbox needs', async () => {
      const user = newUser(true);
      const check = (...words: string[]) =>
        user.run([join(user.clone, 'agent', 'build', 'sandboxer-spawner'), '--check', ...words]);
      expect(await check('--usermap=self')).toMatchObject({ code: 0, stdout: 'ok\n' });
      const own = `${user.firstSubordinate}:65535`;
      expect(await check(`--usermap=${own}:${own}`)).toMatchObject({ code: 0, stdout: 'ok\n' });
      // Ids that are not this user's, and namespaces without a user namespace: refused by the kernel, and said so.
      expect(await check('--usermap=5:65535:5:65535')).toMatchObject({ code: 1 });
      expect(await check()).toMatchObject({ code: 1, stdout: 'namespaces: Operation not permitted\n' });
      expect(await check('--nonsense')).toMatchObject({ code: 2 });
    });
  },
);
