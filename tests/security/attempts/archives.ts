/** Archives that are sent into a sandbox: none may write beside its place there. */
import type { ArchiveEntry } from '../../../src/testing/conformance/tar-archive.ts';
import { archiveOf } from '../../../src/testing/conformance/tar-archive.ts';
import type { AttemptClass } from './attempt.ts';
import { attempt } from './attempt.ts';

const UP = '../'.repeat(30);
const file = (name: string): ArchiveEntry => ({ name, content: 'by an archive' });
const link = (name: string, linkTarget: string): ArchiveEntry => ({ name, type: 'symlink', linkTarget });
const hard = (name: string, linkTarget: string): ArchiveEntry => ({ name, type: 'hardlink', linkTarget });
const directory = (name: string): ArchiveEntry => ({ name, type: 'directory' });

/** A record before the entry that gives it another name. */
function renamed(flag: 'L' | 'x', name: string): Buffer {
  const text = flag === 'L' ? `${name}\0` : pax('path', name);
  const archive = archiveOf([{ name: 'longer', content: text }, file('plain')]);
  archive.write(flag, 156);
  archive.write('        ', 148);
  const sum = archive.subarray(0, 512).reduce((all, byte) => all + byte, 0);
  archive.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  return archive;
}

function pax(key: string, value: string): string {
  const rest = ` ${key}=${value}\n`;
  const length = [1, 2, 3, 4]
    .map((digits) => digits + rest.length)
    .find((sum) => String(sum).length === sum - rest.length);
  return `${length}${rest}`;
}

const cutOff = (at: number) =>
  archiveOf([file('whole'), { name: 'large', content: 'x'.repeat(2000) }]).subarray(0, at);

/** By what is shown in the table; each is refused, whole. */
export const ARCHIVES: Readonly<Record<string, Buffer>> = {
  'a name with ..': archiveOf([file('fine'), file('../beside')]),
  'a name with .. behind a directory': archiveOf([directory('a'), file('a/../../beside')]),
  'a name with .. thirty times': archiveOf([file(`${UP}tmp/beside`)]),
  'an absolute name': archiveOf([file('/tmp/beside')]),
  'an absolute name of two slashes': archiveOf([file('//tmp/beside')]),
  'a file behind an absolute link': archiveOf([link('door', '/tmp'), file('door/beside')]),
  'a file behind a link upwards': archiveOf([link('door', '..'), file('door/beside')]),
  'a file behind a chain of links': archiveOf([
    directory('a'),
    directory('a/b'),
    link('a/b/x', '../..'),
    link('z', 'a/b/x/..'),
    file('z/beside'),
  ]),
  'a directory behind a link': archiveOf([link('door', '/tmp'), directory('door/beside')]),
  'a link behind a link': archiveOf([link('door', '/tmp'), link('door/beside', '/etc/passwd')]),
  'a directory that becomes a link': archiveOf([directory('door'), link('door', '..'), file('door/beside')]),
  'a hard link to a file outside': archiveOf([hard('shadow', '/etc/passwd')]),
  'a hard link upwards': archiveOf([hard('shadow', '../beside')]),
  'a hard link behind a link': archiveOf([link('door', '/etc'), hard('shadow', 'door/passwd')]),
  'a file through a hard link to a link': archiveOf([
    link('door', '/tmp/beside'),
    hard('again', 'door'),
    file('again/x'),
  ]),
  'a long name of GNU with ..': renamed('L', `${'a/'.repeat(60)}${UP}tmp/beside`),
  'a name of pax with ..': renamed('x', `${UP}tmp/beside`),
  'an absolute name of pax': renamed('x', '/tmp/beside'),
  'cut off in a file': cutOff(2500),
  'cut off in the padding of a file': cutOff(512 + 512 + 512 + 2000 + 8),
  'cut off between two entries': cutOff(1024),
  'cut off in a header': cutOff(1024 + 100),
  'no archive at all': Buffer.alloc(2048, 0x41),
};

export const archives: AttemptClass = {
  title: 'Archives that are sent in',
  why: 'an entry beside its place would be written with the rights of the agent',
  policy: 'held',
  withoutWall: 'would do harm',
  attempts: Object.keys(ARCHIVES).map((name) => attempt(name, `archive ${name}`)),
};
