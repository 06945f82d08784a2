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

  it('opens what it sealed, and never seals the same twice alike', () => {
    const [one, two] = [box.seal('whsec_täst', 'a'), box.seal('whsec_täst', 'a')];
    expect(one).not.toBe(two);
    expect(box.open(one, 'a')).toBe('whsec_täst');
    expect(new SealedBox(key(1)).open(two, 'a')).toBe('whsec_täst');
    expect(box.open(box.seal('', 'a'), 'a')).toBe('');
  });

  it('opens nothing else', () => {
    const sealed = box.seal('secret', 'a');
    expect(() => box.open(sealed, 'b')).toThrow('belongs to something else');
    expect(() => new SealedBox(key(2)).open(sealed, 'a')).toThrow('another master key');
    const [version, id, body = ''] = sealed.split('.');
    const bytes = Buffer.from(body, 'base64url');
    for (let i = 0; i < bytes.length; i += 3) {
      const changed = Buffer.from(bytes);
      changed[i] = (changed[i] ?? 0) ^ 1;
      const text = `${version}.${id}.${changed.toString('base64url')}`;
      expect(() => box.open(text, 'a')).toThrow('cannot be opened');
    }
    expect(() => box.open(`${version}.${id}.AAAA`, 'a')).toThrow('cut short');
    expect(() => box.open('nonsense', 'a')).toThrow('cannot be opened');
  });
});

describe('master key', () => {
  it('is made once, for its owner alone', () => {
    const file = join(dir, 'new.key');
    const made = loadMasterKey({ file });
    expect(made.length).toBe(32);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(loadMasterKey({ file })).toEqual(made);
  });

  it('comes from the environment before a command before a file', () => {
    const file = join(dir, 'other.key');
    writeFileSync(file, key(3).toString('base64'), { mode: 0o600 });
    const command = [process.execPath, '-e', `console.log('${'04'.repeat(32)}')`];
    expect(loadMasterKey({ file })).toEqual(key(3));
    expect(loadMasterKey({ file, command })).toEqual(key(4));
    expect(loadMasterKey({ file, command, value: key(5).toString('hex') })).toEqual(key(5));
  });

  it('refuses one that others can read, one that is no key, and a command that fails, telling no key', () => {
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
