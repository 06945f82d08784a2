import { expect, it } from 'vitest';
import { PullProgress } from './pull-progress.ts';

function after(...steps: Parameters<PullProgress['note']>[0][]): unknown {
  const progress = new PullProgress();
  for (const step of steps) progress.note(step);
  return { bytes: progress.bytes, layers: progress.layers };
}

const detail = (current: number, total: number) => ({ progressDetail: { current, total } });

it('pull progress adds up downloaded bytes, and not unpacked ones', () => {
  expect(
    after(
      { status: 'Pulling from team/tool', id: '1' },
      { status: 'Pulling fs layer', id: 'a' },
      { status: 'Pulling fs layer', id: 'b' },
      { status: 'Already exists', id: 'c' },
      { status: 'Downloading', id: 'a', ...detail(30, 100) },
      { status: 'Downloading', id: 'b', ...detail(10, 50) },
    ),
  ).toEqual({ bytes: { done: 40, total: 150 }, layers: { done: 1, total: 3 } });
  expect(
    after(
      { status: 'Downloading', id: 'a', ...detail(30, 100) },
      { status: 'Download complete', id: 'a' },
      { status: 'Extracting', id: 'a', ...detail(5, 900) },
    ),
  ).toEqual({ bytes: { done: 100, total: 100 }, layers: { done: 0, total: 1 } });
  expect(
    after({ status: 'Downloading', id: 'a', ...detail(30, 100) }, { status: 'Pull complete', id: 'a' }),
  ).toEqual({ bytes: { done: 100, total: 100 }, layers: { done: 1, total: 1 } });
});

it('pull progress remembers a bounded number of layers, whatever the engine reports', () => {
  const steps = Array.from({ length: 2_000 }, (_, at) => ({ status: 'Pulling fs layer', id: `l${at}` }));
  expect(after(...steps)).toMatchObject({ layers: { total: 512 } });
});
