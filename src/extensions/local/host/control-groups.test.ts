import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { findControlGroups, placesOfGroup } from './control-groups.ts';

const scratch = mkdtempSync(join(tmpdir(), 'sbx-groups-'));
let top = '';
let made = 0;

interface Group {
  /** Type of the group; the root of all groups has none. */
  readonly type?: string;
  readonly offers?: string;
  readonly handsOn?: string;
  readonly processes?: string;
  /** Whether the group is delegated: its writable files exist. */
  readonly ours?: boolean;
}

/**
 * Makes a group by its files. One that is not delegated lacks the files that the code would write: root may write any existing
 * file.
 */
function group(path: string, { type = 'domain', offers = '', handsOn = '', processes = '', ours }: Group) {
  const directory = join(top, path);
  mkdirSync(directory, { recursive: true });
  const write = (name: string, content: string) => writeFileSync(join(directory, name), `${content}\n`);
  if (type !== '') write('cgroup.type', type);
  write('cgroup.controllers', offers);
  if (ours !== true) return;
  write('cgroup.procs', processes);
  write('cgroup.subtree_control', handsOn);
}

const unified = (own: string, root = '/') => ({
  mountinfo: `29 23 0:26 ${root} ${top} rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n`,
  cgroup: `0::${own}\n`,
});

const ALL = 'cpuset cpu io memory pids';
const MANAGER = '/user.slice/user-1000.slice/user@1000.service';

beforeEach(() => {
  made += 1;
  top = join(scratch, String(made));
  mkdirSync(top);
});
afterAll(() => rmSync(scratch, { recursive: true }));

describe('control groups of version 2', () => {
  it('root has those below the root of all, which has processes and hands on nevertheless', () => {
    group('', { type: '', offers: ALL, handsOn: 'memory', processes: '2\n3', ours: true });
    group('/system.slice/ssh.service', { offers: 'memory', processes: '77', ours: true });
    expect(findControlGroups('g', unified('/system.slice/ssh.service'))).toEqual({
      cgroups: 'v2',
      controllers: ['memory', 'pids', 'cpu', 'freezer'],
      unified: top,
    });
  });

  it('a user has those below their own service manager, not below the service that we are', () => {
    group('', { type: '', offers: ALL, handsOn: ALL });
    group('/user.slice', { offers: ALL });
    group(MANAGER, { offers: 'cpu memory pids', handsOn: 'memory pids', ours: true });
    group(`${MANAGER}/app.slice`, { offers: 'memory pids', handsOn: 'memory pids', ours: true });
    const service = `${MANAGER}/app.slice/run-u0.service`;
    group(service, { offers: 'memory pids', processes: '812', ours: true });
    expect(findControlGroups('g', unified(service))).toMatchObject({
      controllers: ['memory', 'pids', 'cpu', 'freezer'],
      unified: join(top, MANAGER),
    });
  });

  it('a session that is not delegated has none', () => {
    group('', { type: '', offers: ALL });
    group('/user.slice/user-1000.slice/session-3.scope', { offers: 'memory pids' });
    const found = findControlGroups('g', unified('/user.slice/user-1000.slice/session-3.scope'));
    expect(found).toEqual({ cgroups: 'v2', controllers: [], unified: null });
  });

  it('a service whose processes are in its own group can freeze and not limit', () => {
    group('', { type: '', offers: ALL });
    group('/system.slice/sandboxer.service', { offers: 'cpu memory pids', processes: '9', ours: true });
    expect(findControlGroups('g', unified('/system.slice/sandboxer.service'))).toMatchObject({
      controllers: ['freezer'],
      unified: join(top, 'system.slice/sandboxer.service'),
    });
  });

  it('a service whose processes are in a subgroup has limits beside that', () => {
    group('', { type: '', offers: ALL });
    group('/system.slice/sandboxer.service', { offers: 'cpu memory pids', ours: true });
    group('/system.slice/sandboxer.service/server', { processes: '9', ours: true });
    expect(findControlGroups('g', unified('/system.slice/sandboxer.service/server'))).toMatchObject({
      controllers: ['memory', 'pids', 'cpu', 'freezer'],
      unified: join(top, 'system.slice/sandboxer.service'),
    });
  });

  it('the topmost group in a container is not the root of all: its processes stand in the way', () => {
    group('', { offers: ALL, processes: '1\n14', ours: true });
    expect(findControlGroups('g', unified('/')).controllers).toEqual(['freezer']);
    group('', { offers: ALL, processes: '', ours: true });
    group('/server', { processes: '1\n14', ours: true });
    expect(findControlGroups('g', unified('/server')).controllers).toContain('memory');
  });

  it('controllers that are delegated already are available beside processes', () => {
    group('', { offers: 'pids', handsOn: 'pids', processes: '1', ours: true });
    expect(findControlGroups('g', unified('/')).controllers).toEqual(['pids', 'freezer']);
  });

  it.each(['threaded', 'domain threaded', 'domain invalid'])(
    'a group below one of type %s is not used',
    (type) => {
      group('', { type: '', offers: ALL });
      group('/a', { type, offers: ALL, ours: true });
      expect(findControlGroups('g', unified('/a'))).toMatchObject({ controllers: [], unified: null });
    },
  );

  it('hierarchies of version 1 that limit nothing do not stand in the way', () => {
    group('', { type: '', offers: ALL, ours: true });
    const { mountinfo, cgroup } = unified('/');
    const marks = `31 24 0:28 / ${join(top, 'net_cls')} rw shared:9 - cgroup cgroup rw,net_cls\n`;
    const systemd = `32 24 0:29 / ${join(top, 'systemd')} rw shared:9 - cgroup cgroup rw,xattr,name=systemd\n`;
    const found = findControlGroups('g', { mountinfo: mountinfo + marks + systemd, cgroup });
    expect(found).toMatchObject({ cgroups: 'v2', unified: top });
    expect(found.controllers).toContain('memory');
  });

  it('a part of the hierarchy may be mounted, or we may be outside of it', () => {
    group('', { offers: 'memory', ours: true });
    group('/server', { processes: '1', ours: true });
    expect(findControlGroups('g', unified('/docker/abc/server', '/docker/abc')).unified).toBe(top);
    expect(placesOfGroup('g', unified('/docker/abc/server', '/docker/abc'))).toEqual([
      join(top, 'g'),
      join(top, 'server', 'g'),
    ]);
    expect(placesOfGroup('g', unified('/../../system.slice', '/'))).toEqual([join(top, 'g')]);
    expect(placesOfGroup('g', unified('/elsewhere', '/docker/abc'))).toEqual([join(top, 'g')]);
  });
});

describe('control groups of version 1', () => {
  const mounts = (names: readonly string[]) =>
    names.map((name) => `30 24 0:27 / ${join(top, name)} rw shared:9 - cgroup cgroup rw,${name}\n`).join('');

  it('control groups of version 1 are those that are mounted and can be written, whatever else exists', () => {
    for (const name of ['memory', 'cpu,cpuacct', 'pids']) mkdirSync(join(top, name));
    const mountinfo = mounts(['memory', 'cpu,cpuacct', 'pids', 'freezer']);
    const cgroup = '5:memory:/a\n4:cpu,cpuacct:/\n3:pids:/\n2:freezer:/\n0::/\n';
    const found = { controllers: ['memory', 'pids', 'cpu'], unified: null };
    expect(findControlGroups('g', { mountinfo, cgroup })).toEqual({ cgroups: 'v1', ...found });
    const both = mountinfo + unified('/').mountinfo;
    expect(findControlGroups('g', { mountinfo: both, cgroup })).toEqual({ cgroups: 'hybrid', ...found });
  });

  it('control groups of version 1 do not exist where none are mounted', () => {
    expect(findControlGroups('g', { mountinfo: '', cgroup: '' })).toEqual({
      cgroups: 'none',
      controllers: [],
      unified: null,
    });
  });
});
