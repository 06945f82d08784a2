/** Bytes from outside: archives, frames and messages, also when they come one by one. */
import { describe, expect, it } from 'vitest';
import type { TarEntry } from '../../../src/archive/tar/format.ts';
import { readTar as readTarOfClient } from '../../../src/archive/tar/read-tar.ts';
import { FrameDecoder } from '../../../src/client/streams/frames.ts';
import { ServerSentEventDecoder } from '../../../src/client/streams/server-sent-events.ts';
import { WebSocketDecoder } from '../../../src/client/transport/web-socket-codec.ts';
import { readTreeArchive, writeTreeArchive } from '../../../src/core/assets/tree-archive.ts';
import { FrameParser } from '../../../src/extensions/shared/agent-session/frame-parser.ts';
import { JsonScanner } from '../../../src/http/bounds/json-scanner.ts';
import { MessageMeter } from '../../../src/http/bounds/message-meter.ts';
import { checkArchive } from '../../../src/inputs/check-archive.ts';
import type { Case } from './growth.ts';
import { excesses } from './growth.ts';

async function* nothing(): AsyncGenerator<Uint8Array> {}

type Shape = (n: number) => Pick<TarEntry, 'name' | 'kind' | 'linkTarget'>;
const file = (name: string) => ({ name, kind: 'file', linkTarget: null }) as const;
const link = (name: string, linkTarget: string) => ({ name, kind: 'symlink', linkTarget }) as const;

const SHAPES: Record<string, Shape> = {
  'many files': (n) => file(`f${n}`),
  'files in directories of their own': (n) => file(`d${n}/e/f`),
  'deep paths, each below a top of its own': (n) => file(`t${n}/${'a/'.repeat(1_900)}f`),
  'deep paths below one top': (n) => file(`${'a/'.repeat(1_900)}f${n}`),
  'many links': (n) => link(`l${n}`, `d/${n}`),
  'links that go up behind a name': (n) =>
    n % 2 === 0 ? file(`d${n}/x`) : link(`l${n}`, `d${n - 1}/../d0/x`),
  'links with long targets': (n) => link(`l${n}`, `${'a/'.repeat(1_900)}f`),
  'links with long targets that go up': (n) =>
    n === 0 ? file('a/x') : link(`l${n}`, `${'a/../'.repeat(700)}f`),
};

const archives = new Map<string, Buffer>();

/** Made once: what is measured is reading. */
async function archive(name: string, count: number): Promise<Buffer> {
  const key = `${name} ${count}`;
  const known = archives.get(key);
  if (known) return known;
  const shape = SHAPES[name] as Shape;
  async function* entries(): AsyncGenerator<TarEntry> {
    for (let n = 0; n < count; n += 1)
      yield { ...shape(n), mode: 0o644, size: 0, modifiedAtMs: 0, body: nothing() };
  }
  const parts: Uint8Array[] = [];
  for await (const part of writeTreeArchive(entries())) parts.push(part);
  const bytes = Buffer.concat(parts);
  archives.set(key, bytes);
  return bytes;
}

async function* chunks(bytes: Buffer, size = 65_536): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

const READERS: Record<string, (bytes: Buffer) => AsyncIterable<unknown>> = {
  'readTreeArchive of the server': (bytes) => readTreeArchive(chunks(bytes)),
  'readTreeArchive of the client': (bytes) => readTarOfClient(chunks(bytes)),
  checkArchive: (bytes) => checkArchive(chunks(bytes), 1_000_000),
};

describe('work grows no faster than an archive does', () => {
  it.each(Object.entries(READERS))('%s', { timeout: 300_000 }, async (_name, read) => {
    const cases: Case[] = [];
    for (const name of Object.keys(SHAPES)) {
      const each = name.includes('deep') || name.includes('long') ? 10 : 200;
      for (let doubling = 0; doubling <= 3; doubling += 1) await archive(name, each * 2 ** doubling);
      cases.push({
        name,
        async run(factor) {
          const bytes = await archive(name, each * factor);
          // The last one is looked at with all that the reader keeps: its memory is counted.
          const all = read(bytes)[Symbol.asyncIterator]();
          while (!(await all.next()).done);
          return all;
        },
      });
    }
    expect(await excesses(cases, { least: 1, memory: 8 * 1_048_576 })).toEqual([]);
  });

  it('readTreeArchive: headers without an entry leave nothing behind', { timeout: 120_000 }, async () => {
    const records = Array.from(
      { length: 20_000 },
      (_, n) => `${`x${n}=${n % 10}\n`.length + 3} x${n}=${n % 10}\n`,
    );
    const body = Buffer.from(records.join('').slice(0, 500_000));
    const head = Buffer.alloc(512);
    head.write('x', 0);
    head.write(`${body.length.toString(8).padStart(11, '0')}\0`, 124, 'latin1');
    head.write('x', 156, 'latin1');
    head.fill(' ', 148, 156);
    const sum = head.reduce((total, byte) => total + byte, 0);
    head.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
    const padded = Buffer.concat([head, body, Buffer.alloc((512 - (body.length % 512)) % 512)]);
    const run = async (count: number) => {
      async function* source() {
        for (let n = 0; n < count; n += 1) yield padded;
      }
      for await (const _ of readTreeArchive(source()));
    };
    expect(await excesses([{ name: 'headers', run }], { least: 2, memory: 1_048_576 })).toEqual([]);
  });
});

/** The same bytes in pieces of one size. */
function inPieces(bytes: Buffer, size: number, take: (piece: Buffer) => unknown): void {
  for (let at = 0; at < bytes.length; at += size) take(bytes.subarray(at, at + size));
}

const frame = (length: number) => {
  const head = Buffer.alloc(10);
  head[0] = 0x82;
  head[1] = 127;
  head.writeBigUInt64BE(BigInt(length), 2);
  return Buffer.concat([head, Buffer.alloc(length, 0x61)]);
};

const STREAMS: Record<string, (bytes: number, piece: number) => void> = {
  'server-sent events, one long line': (bytes, piece) => {
    const decoder = new ServerSentEventDecoder();
    inPieces(Buffer.from(`data: ${'a'.repeat(bytes)}`), piece, (part) => decoder.decode(part));
  },
  'server-sent events, many lines': (bytes, piece) => {
    const decoder = new ServerSentEventDecoder();
    inPieces(Buffer.from('data: a\n'.repeat(bytes / 8)), piece, (part) => decoder.decode(part));
  },
  'server-sent events, carriage returns': (bytes, piece) => {
    const decoder = new ServerSentEventDecoder();
    inPieces(Buffer.from('\r'.repeat(bytes)), piece, (part) => decoder.decode(part));
  },
  'WebSocket of a client, one message': (bytes, piece) => {
    const decoder = new WebSocketDecoder();
    inPieces(frame(bytes), piece, (part) => decoder.decode(part));
  },
  'WebSocket of a client, many fragments': (bytes, piece) => {
    const decoder = new WebSocketDecoder();
    const fragments = Buffer.concat([
      Buffer.from([0x02, 0]),
      ...Array.from({ length: bytes / 3 }, () => Buffer.from([0x00, 1, 97])),
    ]);
    inPieces(fragments, piece, (part) => decoder.decode(part));
  },
  'WebSocket of the server': (bytes, piece) => {
    const meter = new MessageMeter();
    inPieces(frame(bytes), piece, (part) => meter.feed(part));
  },
  'frames of a client': (bytes, piece) => {
    const decoder = new FrameDecoder();
    const head = Buffer.from([1, 0, 0, 0, 0]);
    head.writeUInt32BE(bytes, 1);
    inPieces(Buffer.concat([head, Buffer.alloc(bytes)]), piece, (part) => decoder.decode(part));
  },
  'frames of an agent': (bytes, piece) => {
    const parser = new FrameParser({ frame() {}, begin() {}, piece() {} });
    const head = Buffer.alloc(10);
    head.writeUInt32LE(Math.min(bytes, 60_000));
    try {
      inPieces(Buffer.concat([head, Buffer.alloc(bytes)]), piece, (part) => parser.push(part));
    } catch {
      // A frame of a type that there is not.
    }
  },
  'JSON while it arrives': (bytes, piece) => {
    const scanner = new JsonScanner(1_000_000_000);
    inPieces(Buffer.from('[],"\\"",'.repeat(bytes / 8)), piece, (part) => scanner.feed(part));
  },
};

describe('work grows no faster than a stream does, however it is cut', () => {
  it.each(Object.entries(STREAMS))('%s', { timeout: 120_000 }, async (_name, run) => {
    const cases = [1, 7, 1_024].map((piece) => ({
      name: `pieces of ${piece}`,
      run: (bytes: number) => run(bytes, piece),
    }));
    expect(await excesses(cases, { least: 49_152 })).toEqual([]);
  });
});
