import { describe, expect, it } from 'vitest';
import { benchmarkName, selectBenchmarks, suggestNames } from './catalogue.ts';

const benchmarks = ['cli.start', 'control.create', 'control.list', 'controller.tick'].map((name) => ({
  name,
}));
const names = (found: { name: string }[]) => found.map(({ name }) => name);

describe('benchmarkName', () => {
  it('benchmarkName is the path below bench/', () => {
    expect(benchmarkName('control/create.bench.ts')).toBe('control.create');
    expect(benchmarkName('local/exec/echo.bench.ts')).toBe('local.exec.echo');
  });
});

describe('selectBenchmarks', () => {
  it('selectBenchmarks takes one by name, an area by its name, and all', () => {
    expect(names(selectBenchmarks(benchmarks, 'control.list'))).toEqual(['control.list']);
    expect(names(selectBenchmarks(benchmarks, 'control'))).toEqual(['control.create', 'control.list']);
    expect(selectBenchmarks(benchmarks, 'all')).toHaveLength(4);
    expect(selectBenchmarks(benchmarks, 'contr')).toEqual([]);
  });
});

describe('suggestNames', () => {
  it('suggestNames offers the nearest names, and no name for nonsense', () => {
    expect(suggestNames(names(benchmarks), 'control.craete')).toContain('control.create');
    expect(suggestNames(names(benchmarks), 'list')).toEqual(['control.list']);
    expect(suggestNames(names(benchmarks), 'zzzzzzzzzzzzzz')).toEqual([]);
  });
});
