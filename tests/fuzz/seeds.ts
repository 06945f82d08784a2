/** Where fuzzing begins: sound requests, archives and frames. */
import { PayloadWriter } from '../../src/extensions/shared/agent-session/payload.ts';
import { T } from '../../src/extensions/shared/agent-session/wire.ts';
import { tarOf } from '../support/image-archives.ts';

const lines = (...text: string[]) => text.map((line) => Buffer.from(`${line}\n`, 'latin1'));

export const REQUESTS = lines(
  '1\thello',
  '2\tcreate\tid=a-g1-a1\tlayers=layers/x:layers/y\thost=usr:bin\tvolumes=v_a:v_b,ro\trange=1879113728\tends_at=1\tkeep=1\tmemory=100\tpids=4\tcpu=10\tlearn=f',
  '3\tdestroy\tid=a-g1-a1\tdiscard=1',
  '4\tstatus\tid=a-g1-a1',
  '5\tinspect\tid=a',
  '6\tcapture\tid=a\tto=layers/c\tseal=1',
  '7\tflatten\tlayers=layers/a:layers/b\thost=usr\tto=layers/f',
  '8\tmeasure\tlayer=layers/in.tar',
  '9\tvolume\tid=v_a',
  '10\town\tpath=layers/none',
  '11\tdiscard\tpath=layers/none',
  '12\tclaim\tid=a\tto=b\tends_at=1\tkeep=0\tmemory=-1\tpids=-1\tcpu=-1',
  '13\textend\tid=a\tends_at=9999999999999',
  '14\tpack\tlayer=layers/none\tto=p.sock\tmost=100',
  '15\tfreeze\tid=a\n16\tthaw\tid=a\n17\tlist\n18\tflush',
);
export const REQUEST_WORDS = [
  '\t',
  '\n',
  '=',
  ':',
  ',ro',
  '..',
  '/',
  '\0',
  'layers/',
  '-1',
  '9'.repeat(30),
  'x'.repeat(300),
];

export const ARCHIVES = [
  tarOf([
    { name: 'd/', type: '5' },
    { name: 'd/file', body: 'x'.repeat(1300), mode: 0o4755, uid: 1000 },
    { name: 'link', type: '2', link: 'd/file' },
    { name: 'hard', type: '1', link: 'd/file' },
    { name: 'pipe', type: '6' },
  ]),
  tarOf([
    {
      name: 'x',
      body: 'y',
      pax: { path: `${'n'.repeat(200)}/file`, 'SCHILY.xattr.user.a': 'b', mtime: '1.5' },
    },
    { name: 'y', body: '', pax: { size: '0', uid: '7', linkpath: 'z' } },
  ]),
  tarOf([
    { name: '././@LongLink', type: 'L', body: `${'l'.repeat(150)}\0` },
    { name: 'short', body: 'z' },
    { name: 'd/.wh.gone' },
    { name: 'd/.wh..wh..opq' },
  ]),
];
export const TAR_WORDS = [
  '../',
  '/',
  '.wh.',
  '\0',
  '99 path=',
  '12 size=9\n',
  '7777777',
  '\x80\0\0\0\xff\xff\xff\xff',
  'ustar\0',
];

function frame(type: number, channel: number, payload: Buffer = Buffer.alloc(0)): Buffer {
  return Buffer.concat([new PayloadWriter().u32(payload.length).u16(type).u32(channel).bytes(), payload]);
}
const HELLO = frame(T.hello, 0, new PayloadWriter().raw('SBXAGENT').u16(1).string('').string('').bytes());
const path = (flags: number, text: string) => new PayloadWriter().u8(flags).string(text).bytes();

export const FRAMES = [
  Buffer.concat([
    frame(T.stat, 1, path(0, 'a')),
    frame(T.list, 2, new PayloadWriter().u8(0).u32(10).u32(1000).string('.').bytes()),
    frame(T.mkdir, 3, new PayloadWriter().u8(0).u8(1).u32(0o755).string('a/b').bytes()),
  ]),
  Buffer.concat([
    frame(T.write, 1, new PayloadWriter().u8(0).u32(0o644).string('f').bytes()),
    frame(T.data, 1, Buffer.from('content')),
    frame(T.eof, 1),
    frame(T.move, 2, new PayloadWriter().u8(0).u8(1).string('f').string('g').bytes()),
    frame(T.window, 1, new PayloadWriter().u32(100).bytes()),
  ]),
  Buffer.concat([
    frame(T.pack, 1, new PayloadWriter().u8(0).u32(65_536).string('.').bytes()),
    frame(T.close, 1),
  ]),
  Buffer.concat([frame(T.processes, 1, new PayloadWriter().u32(1000).bytes()), frame(T.watch, 2)]),
];
export const FRAME_WORDS = [
  '\0\0\0\0',
  '\xff\xff\xff\xff',
  '\0\0\x04\0',
  '..',
  '/',
  '\x28\0',
  '\x1c\0',
  '\x01\0\0\0',
];

export const framesOf = {
  greeted: (frames: Buffer) => Buffer.concat([HELLO, frames]),
  unpacking(archive: Buffer): Buffer {
    const parts = [HELLO, frame(T.unpack, 1, path(0, 'tree'))];
    for (let at = 0; at < archive.length; at += 60_000)
      parts.push(frame(T.data, 1, archive.subarray(at, at + 60_000)));
    return Buffer.concat([...parts, frame(T.eof, 1)]);
  },
};
