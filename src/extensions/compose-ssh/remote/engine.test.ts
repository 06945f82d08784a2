import { describe, expect, it } from 'vitest';
import { checkEngine, chooseEngine, readRootless, unheldBy } from './engine.ts';

const ENDPOINT = 'unix:///run/user/1000/docker.sock';
const ALL = ['cpu', 'memory_mb', 'pids'] as const;
const NONE = { cpu: null, memory_mb: null, pids: null };
const offer = (limits: readonly (typeof ALL)[number][], engine: string | null = '27.0') => ({
  engine,
  rootless: { engine: { endpoint: ENDPOINT, version: '27.0', limits } },
});
const demand = { resources: NONE, elevated: false, declared: [] };
const info = (more: object) =>
  `engine ${ENDPOINT} ${JSON.stringify({ ServerVersion: '27.0', SecurityOptions: ['name=seccomp,profile=builtin', 'name=rootless'], ...more })}`;

describe('compose: the engine of a stack', () => {
  it('engine: a rootless engine is read with the limits that it enforces', () => {
    expect(readRootless(info({ MemoryLimit: true, PidsLimit: true, CpuCfsQuota: false }))).toEqual({
      endpoint: ENDPOINT,
      version: '27.0',
      limits: ['memory_mb', 'pids'],
    });
  });

  it.each([
    ['an engine of root', info({ SecurityOptions: ['name=seccomp'] })],
    ['an option that only begins so', info({ SecurityOptions: ['name=rootlesser'] })],
    ['another answer', `engine ${ENDPOINT} {"SecurityOptions":`],
    ['an endpoint with a blank', info({}).replace('docker.sock', 'docker sock')],
    ['an endpoint that is no socket', info({}).replace('unix:///', 'tcp://')],
    ['silence', `silent ${ENDPOINT}`],
  ])('engine: %s is not taken for a rootless engine', (_what, line) => {
    expect(readRootless(line)).toBeNull();
  });

  it('engine: auto takes a rootless engine that enforces memory and pids', () => {
    const { record, why } = chooseEngine(offer(['memory_mb', 'pids']), 'auto', demand);
    expect(record).toEqual({ kind: 'rootless', endpoint: ENDPOINT });
    expect(why).toBeNull();
  });

  it.each([
    ['pids are not enforced', ['memory_mb'], demand],
    [
      'the profile limits the processor',
      ['memory_mb', 'pids'],
      { ...demand, resources: { ...NONE, cpu: 1 } },
    ],
    ['the compose file limits the processor', ['memory_mb', 'pids'], { ...demand, declared: ['cpu'] }],
  ] as const)('engine: auto takes the rootful engine where %s, and says why', (_what, limits, wanted) => {
    const { record, why } = chooseEngine(offer(limits), 'auto', wanted);
    expect(record.kind).toBe('rootful');
    expect(why).toMatch(/does not enforce (?:cpu|pids)/);
  });

  it('engine: auto places an elevated stack on the rootful engine, where there is one', () => {
    const elevated = { ...demand, elevated: true };
    expect(chooseEngine(offer(ALL), 'auto', elevated).record.kind).toBe('rootful');
    expect(chooseEngine(offer(ALL, null), 'auto', elevated).record.kind).toBe('rootless');
    expect(chooseEngine(offer(ALL), 'rootless', elevated).record.kind).toBe('rootless');
  });

  it('engine: rootless takes no other engine, and refuses a limit that it does not enforce', () => {
    expect(chooseEngine(offer([]), 'rootless', demand).record.kind).toBe('rootless');
    const limited = { ...demand, resources: { ...NONE, memory_mb: 64 } };
    expect(() => chooseEngine(offer([]), 'rootless', limited)).toThrow(/does not enforce memory_mb/);
    const missing = { engine: '27.0', rootless: { missing: 'Our user has none.' } };
    expect(() => chooseEngine(missing, 'rootless', demand)).toThrow(/Our user has none/);
    expect(chooseEngine(missing, 'auto', demand).record.kind).toBe('rootful');
  });

  it('engine: rootful never takes the rootless engine', () => {
    expect(chooseEngine(offer(ALL), 'rootful', demand).record.kind).toBe('rootful');
    expect(() => chooseEngine(offer(ALL, null), 'rootful', demand)).toThrow(/no rootful engine/);
  });

  it('engine: what is made of a snapshot is refused where its engine does not fit', () => {
    const rootful = { kind: 'rootful', endpoint: null } as const;
    const record = { kind: 'rootless', endpoint: ENDPOINT } as const;
    expect(() => checkEngine(rootful, offer(ALL), 'rootless', NONE)).toThrow(/rootful engine/);
    expect(() => checkEngine(rootful, offer(ALL), 'auto', NONE)).not.toThrow();
    expect(() => checkEngine(record, offer([]), 'auto', { ...NONE, pids: 10 })).toThrow(/pids/);
    expect(unheldBy(record, { missing: 'It has gone.' })).toEqual(ALL);
  });
});
