import type { Socket } from 'node:net';

export interface PlainRequest {
  readonly socketPath: string;
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string | number>>;
  readonly body: Uint8Array | undefined;
}

export interface Answer {
  readonly status: number;
  readonly retryAfter: string | undefined;
  readonly body: Buffer;
}

const FORBIDDEN_IN_A_HEADER = /[^\t\x20-\x7e\x80-\xff]/;
const FORBIDDEN_IN_A_PATH = /[^\x21-\x7e]/;
const LONGEST_HEAD = 65_536;

function headOf({ method, path, headers }: PlainRequest): string {
  if (FORBIDDEN_IN_A_PATH.test(path)) throw new TypeError('The path has characters that no path may have.');
  let head = `${method} ${path} HTTP/1.0\r\nhost: localhost\r\n`;
  for (const [name, value] of Object.entries(headers)) {
    if (FORBIDDEN_IN_A_HEADER.test(String(value))) {
      throw new TypeError(`The header ${name} has characters that no header may have.`);
    }
    head += `${name}: ${value}\r\n`;
  }
  return `${head}\r\n`;
}

/** Parses an answer; `null` when it is not complete; `whole` when that is known without the end of the connection. */
function parsedAnswer(bytes: Buffer): (Answer & { readonly whole: boolean }) | null {
  const end = bytes.subarray(0, LONGEST_HEAD).indexOf('\r\n\r\n');
  const head = end === -1 ? '' : bytes.toString('latin1', 0, end);
  const status = /^HTTP\/1\.[01] (\d{3})/.exec(head)?.[1];
  if (status === undefined) return null;
  const header = (name: string) => new RegExp(`\r\n${name}:[ \t]*([^\r\n]*)`, 'i').exec(head)?.[1];
  const body = bytes.subarray(end + 4);
  const length = header('content-length');
  if (length !== undefined && Number(length) !== body.length) return null;
  return { status: Number(status), retryAfter: header('retry-after'), body, whole: length !== undefined };
}

/** Returns the errors that node:http has for a connection that ended early, or that speaks another protocol. */
function noAnswer(parts: readonly Buffer[]): Error {
  const began = parts[0] === undefined || parts[0].toString('latin1', 0, 5) === 'HTTP/';
  return began
    ? Object.assign(new Error('it ended before the answer did'), { code: 'ECONNRESET' })
    : Object.assign(new Error('no status line'), { code: 'HPE_INVALID_CONSTANT' });
}

/**
 * Sends one request and reads its answer over a connection of its own to a unix socket, without node:http, which takes longer to
 * load than most commands take. HTTP/1.0, so that the answer ends where the connection does.
 */
export function plainExchange(
  request: PlainRequest,
  done: (answer: Answer) => void,
  fail: (error: Error) => void,
): Socket {
  const head = headOf(request);
  const { createConnection } = process.getBuiltinModule('node:net');
  const socket = createConnection(request.socketPath);
  const parts: Buffer[] = [];
  socket.on('data', (part) => parts.push(part));
  // A refusal before the request was read also breaks the connection: the answer counts.
  socket.on('error', (error) => {
    const answer = parsedAnswer(Buffer.concat(parts));
    if (answer?.whole) return done(answer);
    fail(error);
  });
  socket.on('end', () => {
    const answer = parsedAnswer(Buffer.concat(parts));
    if (answer !== null) return done(answer);
    fail(noAnswer(parts));
  });
  const start = Buffer.from(head, 'latin1');
  socket.write(request.body === undefined ? start : Buffer.concat([start, request.body]));
  return socket;
}
