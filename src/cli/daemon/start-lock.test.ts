import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { isAlive, isSameProcess, processStart } from './process-identity.ts';
import { releaseLock, takeLock } from './start-lock.ts';

const NOBODY = 4_194_303;

describe('the lock for starting the daemon', () => {
  let directory = '';
  let path = '';
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'lock-'));
    path = join(directory, 'daemon.lock');
  });
  afterEach(() => rmSync(directory, { recursive: true }));

  it('the lock for starting the daemon has one holder', () => {
    expect(takeLock(path)).toBe(true);
    expect(takeLock(path)).toBe(false);
    releaseLock(path);
    expect(existsSync(path)).toBe(false);
    expect(takeLock(path)).toBe(true);
  });

  it('the lock for starting the daemon is taken from a holder that is dead, or is another process by now', () => {
    writeFileSync(path, `${NOBODY} 12345`);
    expect(takeLock(path)).toBe(true);
    releaseLock(path);
    writeFileSync(path, `${process.pid} 1`);
    expect(takeLock(path)).toBe(true);
    releaseLock(path);
    writeFileSync(path, 'nonsense');
    expect(takeLock(path)).toBe(true);
  });

  it('the lock for starting the daemon is not released by another process', () => {
    writeFileSync(path, `${process.ppid} ${processStart(process.ppid)}`);
    releaseLock(path);
    expect(existsSync(path)).toBe(true);
    expect(takeLock(path)).toBe(false);
  });

  it('the lock for starting the daemon knows processes by number and start', () => {
    expect(isAlive(process.pid)).toBe(true);
    expect(isAlive(NOBODY)).toBe(false);
    expect(isSameProcess(process.pid, processStart(process.pid))).toBe(true);
    expect(isSameProcess(process.pid, '1')).toBe(false);
  });
});
