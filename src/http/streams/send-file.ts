import { SandboxerError } from '../../contract/errors/errors.ts';
import type { SandboxFiles } from '../../core/ports/session.ts';
import type { Exchange } from '../exchange/exchange.ts';
import type { ByteRange } from '../parse/byte-range.ts';
import { parseRange } from '../parse/byte-range.ts';

/** Headers that keep a browser from running a file under our name, whatever it holds. */
const INERT = {
  'content-type': 'application/octet-stream',
  'content-disposition': 'attachment',
  'content-security-policy': "default-src 'none'; sandbox",
} as const;

async function finish(body: AsyncIterable<Uint8Array>): Promise<void> {
  for await (const _ of body);
}

async function sizeOf(files: SandboxFiles, path: string, signal: AbortSignal): Promise<number> {
  const { size, body } = await files.read(path, { offset: 0, length: 0, signal });
  await finish(body);
  return size;
}

/**
 * Writes exactly `length` bytes: if the file shrank meanwhile, the connection is cut, so that the client does not take the rest
 * for whole.
 */
async function sendExactly(
  exchange: Exchange,
  body: AsyncIterable<Uint8Array>,
  length: number,
): Promise<void> {
  let left = length;
  for await (const chunk of body) {
    const part = chunk.length > left ? chunk.subarray(0, left) : chunk;
    left -= part.length;
    if (part.length > 0) await exchange.write(part);
    if (left === 0) break;
  }
  if (left > 0) exchange.response.destroy();
  else exchange.response.end();
}

async function sendWhole(exchange: Exchange, body: AsyncIterable<Uint8Array>): Promise<void> {
  for await (const chunk of body) await exchange.write(chunk);
  exchange.response.end();
}

async function sendRange(
  exchange: Exchange,
  files: SandboxFiles,
  path: string,
  range: ByteRange,
): Promise<void> {
  const { signal } = exchange;
  const suffixOf = range.kind === 'suffix' ? await sizeOf(files, path, signal) : 0;
  const first = range.kind === 'suffix' ? Math.max(0, suffixOf - range.length) : range.first;
  const asked = range.kind === 'suffix' || range.last === null ? null : range.last - first + 1;
  const { size, body } = await files.read(path, {
    offset: first,
    ...(asked === null ? {} : { length: asked }),
    signal,
  });
  if (first >= size) {
    await finish(body);
    const error = new SandboxerError('SBX_RANGE_NOT_SATISFIABLE', `The file has ${size} bytes.`);
    exchange.sendProblem(error, { 'content-range': `bytes */${size}` });
    return;
  }
  const length = Math.min(size - first, asked ?? size);
  exchange.begin(206, {
    ...INERT,
    'accept-ranges': 'bytes',
    'content-length': length,
    'content-range': `bytes ${first}-${first + length - 1}/${size}`,
  });
  await sendExactly(exchange, body, length);
}

/** Answers GET and HEAD of a file. */
export async function sendFile(exchange: Exchange, files: SandboxFiles, path: string): Promise<void> {
  const { signal } = exchange;
  if (exchange.request.method === 'HEAD') {
    const size = await sizeOf(files, path, signal);
    exchange.sendEmpty(200, { ...INERT, 'accept-ranges': 'bytes', 'content-length': size });
    return;
  }
  const range = parseRange(exchange.header('range'));
  if (range) return sendRange(exchange, files, path, range);
  const { size, body } = await files.read(path, { signal });
  const head = { ...INERT, 'accept-ranges': 'bytes' };
  // Files such as those of /proc say that they are empty and are not.
  if (size === 0) {
    exchange.begin(200, head);
    return sendWhole(exchange, body);
  }
  exchange.begin(200, { ...head, 'content-length': size });
  return sendExactly(exchange, body, size);
}
