import { describe, expect, it } from 'vitest';
import { SharedFlush } from './shared-flush.ts';

/** A disk whose flushes end on command. */
class SlowDisk {
  readonly flushes: { done(): void; fail(error: Error): void }[] = [];

  flush(): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.flushes.push({ done: resolve, fail: reject });
    return promise;
  }
}

const settled = () => new Promise<void>((resolve) => setImmediate(resolve));

describe('a shared flush', () => {
  it('a shared flush serves all callers that wait at its start; a later caller gets another', async () => {
    const disk = new SlowDisk();
    const shared = new SharedFlush(() => disk.flush());
    const order: string[] = [];
    const wait = (name: string) => shared.wait().then(() => order.push(name));
    const first = [wait('a'), wait('b')];
    await settled();
    expect(disk.flushes).toHaveLength(1);
    const late = [wait('late'), wait('later')];
    await settled();
    expect(disk.flushes).toHaveLength(1);
    disk.flushes[0]?.done();
    await Promise.all(first);
    await settled();
    expect(order).toEqual(['a', 'b']);
    expect(disk.flushes).toHaveLength(2);
    disk.flushes[1]?.done();
    await Promise.all(late);
    expect(order).toEqual(['a', 'b', 'late', 'later']);
  });

  it('a shared flush that fails rejects the calls that waited for it, and no later one', async () => {
    const disk = new SlowDisk();
    const shared = new SharedFlush(() => disk.flush());
    const failing = shared.wait();
    const refused = expect(failing).rejects.toThrow('no space');
    await settled();
    const next = shared.wait();
    disk.flushes[0]?.fail(new Error('no space'));
    await refused;
    await settled();
    disk.flushes[1]?.done();
    await next;
  });
});
