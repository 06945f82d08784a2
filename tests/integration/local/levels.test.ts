/** Levels above a container: offered only where their runtime was tried, refused with what would bring them, and true. */
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  globSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, describe, expect, it, vi } from 'vitest';
import { createLocalExtension } from '../../../src/extensions/local/create.ts';
import type { LocalExtension } from '../../../src/extensions/local/extension.ts';
import { findLevels } from '../../../src/extensions/local/host/levels.ts';
import { Layout } from '../../../src/extensions/local/state/layout.ts';
import { runProgram, runShell } from '../../../src/testing/conformance/run-program.ts';
import { Subject } from '../../../src/testing/conformance/subject.ts';

const place = mkdtempSync(join(tmpdir(), 'sbx-levels-'));
const root = process.getuid?.() === 0;

/** A runtime that answers what a script says, and counts how often it was asked to run something. */
function pretend(name: string, running: string): string {
  const folder = mkdtempSync(join(place, 'bin-'));
  const path = join(folder, name);
  writeFileSync(
    path,
    `#!/bin/sh\ncase "$*" in --version) echo ${name} version 9.1;; *) echo >> ${folder}/runs; ${running};; esac\n`,
  );
  chmodSync(path, 0o755);
  vi.stubEnv('PATH', `${folder}:/usr/bin:/bin`);
  return path;
}

const runsOf = (path: string) => readFileSync(join(path, '..', 'runs'), 'utf8').length;
const levels = (directory: string) => findLevels(directory, { root: true, untried: false });

afterEach(() => vi.unstubAllEnvs());
afterAll(() => rmSync(place, { recursive: true, force: true }));

describe('whether a level is offered', () => {
  it('a level is offered where its runtime runs ls; tried once for each build of it', () => {
    const directory = mkdtempSync(join(place, 'state-'));
    const path = pretend('runsc', 'echo /');
    expect(levels(directory).offered.get('gvisor')).toMatchObject({ path, version: '9.1' });
    expect(levels(directory).offered.has('gvisor')).toBe(true);
    expect(runsOf(path)).toBe(1);
    utimesSync(path, statSync(path).atime, new Date(0));
    expect(levels(directory).offered.has('gvisor')).toBe(true);
    expect(runsOf(path)).toBe(2);
  });

  it('a level is offered by a trial that gets no device of this machine: a runtime may make it its own', () => {
    pretend('runsc', 'test ! -c /proc/self/fd/0 -a ! -c /proc/self/fd/1 -a ! -c /proc/self/fd/2 && echo /');
    const { offered } = levels(mkdtempSync(join(place, 'state-')));
    expect(offered.has('gvisor')).toBe(true);
  });

  it('a level whose runtime does not run ls is not offered, with the reason and the needed version', () => {
    pretend('runsc', 'echo "ls: cannot access /: Invalid argument" >&2; exit 2');
    const { offered, lacking } = levels(mkdtempSync(join(place, 'state-')));
    expect(offered.has('gvisor')).toBe(false);
    expect(lacking.get('gvisor')).toEqual({
      reason: 'runsc 9.1 cannot run ls: ls: cannot access /: Invalid argument',
      remedy: expect.stringContaining('November 2023 or newer'),
    });
  });

  it('a microvm by krun or kata-runtime, where they are', () => {
    pretend('krun', 'echo /');
    expect(levels(mkdtempSync(join(place, 'state-'))).offered.get('microvm')?.name).toBe('krun');
    vi.stubEnv('PATH', '/usr/bin:/bin');
    if (['krun', 'kata-runtime'].some((name) => existsSync(`/usr/bin/${name}`))) return;
    expect(levels(mkdtempSync(join(place, 'state-'))).lacking.get('microvm')?.remedy).toContain('/dev/kvm');
  });
});

const runsc = existsSync('/usr/bin/runsc') && existsSync('/bin/busybox') && root;

const NO_LIMITS = { cpu: null, memory_mb: null, disk_mb: null, pids: null, open_files: null, gpu: null };

/** How often this machine's kernel kept sandboxes of this directory from a processor. */
/** Returns how often the kernel held a group of this server back, and the processor time that all of them used. */
function processorUse(): { heldBack: number; usedMs: number } {
  const { group } = new Layout(join(place, 'local'));
  const sumOf = (pattern: string, value: (text: string) => number) =>
    globSync(`/sys/fs/cgroup/${pattern}`)
      .map((path) => value(readFileSync(path, 'utf8')))
      .reduce((sum, one) => sum + one, 0);
  const heldBack = (text: string) => Number(/nr_throttled (\d+)/.exec(text)?.[1] ?? 0);
  const usedMs = (text: string) => Number(/usage_usec (\d+)/.exec(text)?.[1] ?? 0) / 1e3;
  return {
    heldBack: sumOf(`{cpu/,}${group}/*/cpu.stat`, heldBack),
    usedMs:
      sumOf(`cpuacct/${group}/*/cpuacct.usage`, (text) => Number(text) / 1e6) +
      sumOf(`${group}/*/cpu.stat`, usedMs),
  };
}

describe.skipIf(!runsc)('gVisor itself (needs runsc, busybox-static and root)', () => {
  const subjectOf = (one: LocalExtension) =>
    new Subject(one, { create: async () => ({ extension: one, cleanup: async () => {} }) });
  const extension = (untriedLevels: boolean) =>
    createLocalExtension({ directory: join(place, 'local'), lingerMs: 100, untriedLevels });

  it('gVisor is offered as doctor reports, or refused with a typed error that names the remedy', async () => {
    const honest = extension(false);
    const subject = subjectOf(honest);
    const { checks } = await honest.probe(subject.context());
    const told = checks.find(({ name }) => name === 'isolation gvisor');
    expect(told?.ok).toBe(honest.header.capabilities.isolation.includes('gvisor'));
    if (told?.ok) return;
    expect(told?.fix).toContain('November 2023');
    await expect(
      honest.provision(subject.spec({ recipe: { isolation: 'gvisor' } }), subject.context()),
    ).rejects.toMatchObject({ code: 'SBX_UNSUPPORTED', detail: expect.stringContaining('November 2023') });
  });

  // Past the trial: static programs run below the runsc that Debian 12 has, too.
  it('gVisor runs a sandbox with a kernel of its own that can do what is declared, and leaves nothing', async () => {
    let living = extension(true);
    const subject = subjectOf(living);
    const context = subject.context();
    const secrets = [{ name: 'TOKEN', delivery: 'env' as const, value: 'not-on-disk' }];
    const recipe = { isolation: 'gvisor' as const, resources: { ...NO_LIMITS, cpu: 0.5 } };
    const { spec, handle, session, files } = await subject.establish({ recipe, secrets });
    expect(await living.waitReady(handle, context)).toMatchObject({
      isolation: 'gvisor',
      notes: expect.arrayContaining([expect.stringContaining('sudo does not work')]),
    });
    const said = await runShell(session, 'cat /proc/version; echo $TOKEN; busybox id -u; exit 3');
    expect(said.stdout.toString()).toMatch(/^Linux version 4\.4\.0 .*\nnot-on-disk\n1000\n$/);
    expect(said.code).toBe(3);
    expect((await runShell(session, 'echo x > /dev/tcp/1.1.1.1/80')).code).not.toBe(0);
    await files.write(
      'kept',
      (async function* () {
        yield Buffer.from('precious');
      })(),
    );
    const facts = await living.inspectIsolation(handle, context);
    expect(facts).toMatchObject({ level: 'gvisor', runtime: { name: 'runsc' }, no_new_privs: true });
    expect(facts.not_enforced.join(' ')).not.toContain('shares the kernel');
    // Its own kernel counts as used what it waited for: this machine's says whether the limit held.
    expect(facts.limits.cpu_millis).toBe(500);
    const before = processorUse();
    const begun = performance.now();
    await runShell(
      session,
      'for n in 1 2; do busybox timeout 2 busybox sh -c "while :; do :; done" & done; wait',
    );
    const { heldBack, usedMs } = processorUse();
    // Where other work took the processors, it may have used less than its limit without being held back.
    if (heldBack === before.heldBack)
      expect(usedMs - before.usedMs).toBeLessThan(0.5 * (performance.now() - begun));

    await living.pause(handle);
    await living.resume(handle);
    const ref = { snapshotId: 'snap_level', name: null, owner: subject.owner };
    const taken = await living.snapshot(handle, ref);
    const copy = subject.spec({ recipe });
    const restored = await subject.open(copy, await living.restore(copy, taken.ref, context));
    expect((await runProgram(restored.session, ['/usr/bin/busybox', 'cat', 'kept'])).stdout.toString()).toBe(
      'precious',
    );

    // Another process of ours finds it again.
    await session.close();
    await living.close();
    living = extension(true);
    const again = await living.connect(handle, context);
    expect((await runShell(again, 'cat kept')).stdout.toString()).toBe('precious');
    await again.close();

    const pids = { ...NO_LIMITS, pids: 100 };
    await expect(
      living.provision(subject.spec({ recipe: { ...recipe, resources: pids } }), context),
    ).rejects.toMatchObject({ code: 'SBX_UNSUPPORTED' });
    await living.deleteSnapshot(taken.ref, ref);
    for (const one of [spec, copy])
      expect(await living.teardown({ stamp: one.stamp, handle: null }, context)).toMatchObject({
        gone: true,
      });
    await living.close();
    const socket = join(place, 'local', 'spawner.sock');
    for (let tries = 0; tries < 2_400 && existsSync(socket); tries++) await sleep(25);
    const left = execFileSync('ps', ['-eo', 'args'], { encoding: 'utf8' });
    expect(left).not.toContain(join(place, 'local'));
  });
});
