import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { loadMasterKey } from './master-key.ts';
import { SealedBox } from './sealed-box.ts';

const dir = mkdtempSync(join(tmpdir(), 'sbx-master-'));
afterAll(() => rmSync(dir, { recursive: true, force: true }));
const key = (byte: number) => Buffer.alloc(32, byte);

describe('sealed box', () => {
  const box = new SealedBox(key(1));

  it('a sealed box opens what it sealed, and never seals the same twice alike', () => {
    const [one, two] = [box.seal('whsec_täst', 'a'), box.seal('whsec_täst', 'a')];
    expect(one).not.toBe(two);
    expect(box.open(one, 'a')).toBe('whsec_täst');
    expect(new SealedBox(key(1)).open(two, 'a')).toBe('whsec_täst');
    expect(box.open(box.seal('', 'a'), 'a')).toBe('');
  });

  it('a sealed box opens no other ciphertext', () => {
    const sealed = box.seal('secret', 'a');
    expect(() => box.open(sealed, 'b')).toThrow('belongs to something else');
    expect(() => new SealedBox(key(2)).open(sealed, 'a')).toThrow('another master key');
    const parts = sealed.split('.');
    for (const which of [2, 3]) {
      const bytes = Buffer.from(parts[which] ?? '', 'base64url');
      for (let i = 0; i < bytes.length; i += 3) {
        const changed = Buffer.from(bytes);
        changed[i] = (changed[i] ?? 0) ^ 1;
        const text = parts.with(which, changed.toString('base64url')).join('.');
        expect(() => box.open(text, 'a')).toThrow('cannot be opened');
      }
      expect(() => box.open(parts.with(which, 'AAAA').join('.'), 'a')).toThrow('cut short');
    }
    expect(() => box.open('nonsense', 'a')).toThrow('cannot be opened');
  });

  it('a sealed box follows a new master key, and needs the old one no longer', () => {
    const old = box.seal('secret', 'a');
    const both = new SealedBox(key(2), [key(1)]);
    expect(both.open(old, 'a')).toBe('secret');
    const moved = both.reseal(old, 'a') as string;
    expect(both.reseal(moved, 'a')).toBeNull();
    expect(new SealedBox(key(2)).open(moved, 'a')).toBe('secret');
    expect(() => box.open(moved, 'a')).toThrow('another master key');
    expect(() => both.reseal(old, 'b')).toThrow('belongs to something else');
  });

  it('a sealed box opens values sealed before envelopes existed', () => {
    const direct = 'v1.2f35ca10.BwcHBwcHBwcHBwcHkmzXKE-6Ip894wznHRn5cJpT9lqWk4OUAA';
    expect(box.open(direct, 'a')).toBe('whsec_old');
    const moved = box.reseal(direct, 'a') as string;
    expect(moved).toMatch(/^v2\./);
    expect(box.open(moved, 'a')).toBe('whsec_old');
  });
});

describe('master key', () => {
  it('the master key is made once, for its owner alone', () => {
    const file = join(dir, 'new.key');
    const made = loadMasterKey({ file });
    expect(made.length).toBe(32);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(loadMasterKey({ file })).toEqual(made);
  });

  it('the master key comes from the environment before a command before a file', () => {
    const file = join(dir, 'other.key');
    writeFileSync(file, key(3).toString('base64'), { mode: 0o600 });
    const command = [process.execPath, '-e', `console.log('${'04'.repeat(32)}')`];
    expect(loadMasterKey({ file })).toEqual(key(3));
    expect(loadMasterKey({ file, command })).toEqual(key(4));
    expect(loadMasterKey({ file, command, value: key(5).toString('hex') })).toEqual(key(5));
  });

  it('a master key is refused when others can read it, it is no key or its command fails; no message shows a key', () => {
    const file = join(dir, 'open.key');
    writeFileSync(file, key(6).toString('base64'));
    chmodSync(file, 0o640);
    expect(() => loadMasterKey({ file })).toThrow('Others than its owner');
    expect(() => loadMasterKey({ file, value: 'short' })).toThrow('not 32 bytes');
    expect(() => loadMasterKey({ file, command: [process.execPath, '-e', 'process.exit(3)'] })).toThrow(
      'exit 3',
    );
    expect(() => loadMasterKey({ file, command: ['/nonexistent'] })).toThrow('ENOENT');
    expect(readFileSync(file, 'utf8')).toBe(key(6).toString('base64'));
  });
});
