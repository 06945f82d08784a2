import { describe, expect, it } from 'vitest';
import { giveBack, lend, SlabPool } from './slab-pool.ts';

/** Reads `count` bytes of `value` as a socket would. */
function read(pool: SlabPool, count: number, value: number): Buffer {
  pool.room().fill(value, 0, count);
  return pool.filled(count);
}

/** Reads until the pool has left the slab that `piece` lies in. */
function moveOn(pool: SlabPool, piece: Buffer): void {
  while (pool.room().buffer === piece.buffer) read(pool, Math.min(4096, pool.room().length), 0);
}

/** Returns a pool with so much traffic that its slabs are large. */
function busyPool(): SlabPool {
  const pool = new SlabPool();
  read(pool, pool.room().length, 0);
  expect(pool.room().length).toBe(262_144);
  return pool;
}

describe('SlabPool', () => {
  it('SlabPool never reads over a piece that is lent', () => {
    const pool = busyPool();
    const piece = read(pool, 1000, 7);
    lend(piece);
    moveOn(pool, piece);
    for (let n = 0; n < 200; n++)
      expect(read(pool, Math.min(65_536, pool.room().length), 1).buffer).not.toBe(piece.buffer);
    expect(piece.every((byte) => byte === 7)).toBe(true);
  });

  it('SlabPool uses a slab again when all its pieces were given back, and not before', () => {
    const pool = busyPool();
    const pieces = [read(pool, 1000, 1), read(pool, 1000, 2)] as const;
    for (const piece of pieces) lend(piece);
    moveOn(pool, pieces[0]);
    const second = pool.room();
    giveBack(pieces[0]);
    moveOn(pool, second);
    expect(pool.room().buffer).not.toBe(pieces[0].buffer);
    giveBack(pieces[1]);
    const third = pool.room();
    moveOn(pool, third);
    expect(pool.room().buffer).toBe(pieces[0].buffer);
  });

  it('SlabPool keeps the slab it reads into, whatever is given back of it', () => {
    const pool = new SlabPool();
    const piece = read(pool, 1000, 3);
    lend(piece);
    giveBack(piece);
    expect(read(pool, 1000, 4).byteOffset).toBe(piece.byteOffset + 1000);
  });

  it('SlabPool starts small until it is read full', () => {
    const pool = new SlabPool();
    for (let n = 0; n < 50; n++) read(pool, 100, 1);
    expect(pool.room().length).toBeLessThanOrEqual(16_384);
    busyPool();
  });

  it('SlabPool leaves memory of others alone', () => {
    const other = Buffer.alloc(10);
    lend(other);
    giveBack(other);
  });
});
