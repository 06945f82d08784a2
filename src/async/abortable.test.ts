import { getEventListeners } from 'node:events';
import { expect, it } from 'vitest';
import { abortable } from './abortable.ts';

const never = new Promise<never>(() => {});

it('abortable: the result of the work is the result, and no listener stays', async () => {
  const { signal } = new AbortController();
  expect(await abortable(Promise.resolve('done'), signal)).toBe('done');
  await expect(abortable(Promise.reject(new Error('failed')), signal)).rejects.toThrow('failed');
  expect(getEventListeners(signal, 'abort')).toEqual([]);
});

it('abortable: an abort rejects although the work never ends', async () => {
  const controller = new AbortController();
  const waiting = abortable(never, controller.signal);
  controller.abort(new Error('enough'));
  await expect(waiting).rejects.toThrow('enough');
});

it('abortable: the error is the caller’s own where one is given', async () => {
  const controller = new AbortController();
  const waiting = abortable(never, controller.signal, () => new Error('translated'));
  controller.abort();
  await expect(waiting).rejects.toThrow('translated');
  await expect(abortable(never, controller.signal, () => new Error('again'))).rejects.toThrow('again');
});

it('abortable: a failure after the abort is not an unhandled rejection', async () => {
  const unhandled: unknown[] = [];
  const note = (reason: unknown) => unhandled.push(reason);
  process.on('unhandledRejection', note);
  const late = Promise.withResolvers<never>();
  await expect(abortable(late.promise, AbortSignal.abort(new Error('enough')))).rejects.toThrow('enough');
  late.reject(new Error('late'));
  await new Promise((resolve) => setTimeout(resolve, 5));
  process.off('unhandledRejection', note);
  expect(unhandled).toEqual([]);
});
