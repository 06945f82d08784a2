/** Files that are added to an image before sandboxes are made from it. */
import { SandboxerError } from '../../../contract/errors/errors.ts';
import { INSIDE } from '../containers/container-config.ts';
import { bytesOfFile } from '../engine/archive-file.ts';
import type { EngineClient } from '../engine/engine-client.ts';
import { BACKEND, isMissing } from '../engine/engine-error.ts';

const BLOCK = 512;
const OTHERWISE = '1000:1000';
const LARGEST_ID = 2_147_483_647;

interface Entry {
  readonly name: string;
  readonly mode: number;
  readonly uid?: number;
  readonly gid?: number;
  readonly content?: Buffer;
}

function header({ name, mode, uid = 0, gid = 0, content }: Entry): Buffer {
  const block = Buffer.alloc(BLOCK);
  const octal = (value: number, at: number, digits: number) =>
    block.write(`${value.toString(8).padStart(digits, '0')}\0`, at);
  block.write(name, 0);
  octal(mode, 100, 7);
  // Ids that do not fit into seven octal digits are written as binary numbers.
  for (const [id, at] of [
    [uid, 108],
    [gid, 116],
  ] as const) {
    if (id < 0o10000000) octal(id, at, 7);
    else {
      block[at] = 0x80;
      block.writeUInt32BE(id, at + 4);
    }
  }
  octal(content?.length ?? 0, 124, 11);
  octal(0, 136, 11);
  block.write('        ', 148);
  block.write(content === undefined ? '5' : '0', 156);
  block.write('ustar\x0000', 257, 'latin1');
  const sum = block.reduce((all, byte) => all + byte, 0);
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  return block;
}

/** Yields the work directory, the places for mounts, and the agent itself where it cannot be mounted. */
export async function* preparedTree(
  user: string,
  agent: Buffer | null,
  readable: boolean,
): AsyncGenerator<Uint8Array> {
  const [uid = 0, gid = 0] = user.split(':').map(Number);
  const inside = (path: string) => path.slice(1);
  const entries: Entry[] = [
    { name: `${inside(INSIDE.work)}/`, mode: 0o755, uid, gid },
    { name: '.sandboxer/', mode: 0o755 },
    { name: `${inside(INSIDE.door)}/`, mode: 0o755 },
    // Executable and unreadable: the kernel then protects its memory from every process inside. Sandboxes with a kernel of their
    // own must read the program.
    { name: inside(INSIDE.agent), mode: readable ? 0o755 : 0o711, content: agent ?? Buffer.alloc(0) },
  ];
  for (const entry of entries) {
    yield header(entry);
    if (entry.content === undefined) continue;
    yield entry.content;
    yield Buffer.alloc((BLOCK - (entry.content.length % BLOCK)) % BLOCK);
  }
  yield Buffer.alloc(2 * BLOCK);
}

function idIn(text: string | undefined): number | null {
  const id = text !== undefined && /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN;
  return id <= LARGEST_ID ? id : null;
}

async function table(
  client: EngineClient,
  container: string,
  path: string,
  signal: AbortSignal,
): Promise<string[][]> {
  try {
    const text = await bytesOfFile(client, container, path, signal);
    return text
      .toString('utf8')
      .split('\n')
      .map((line) => line.split(':'));
  } catch (error) {
    if (isMissing(error)) return [];
    throw error;
  }
}

/** Returns the image's own user as `uid:gid`. Root, or none, becomes 1000: no program is root by default. */
export async function userOfImage(
  client: EngineClient,
  container: string,
  user: string,
  signal: AbortSignal,
): Promise<string> {
  const [name = '', group] = user.split(':');
  if (name === '' || name === 'root' || name === '0') return OTHERWISE;
  const users = await table(client, container, '/etc/passwd', signal);
  const number = idIn(name);
  const line = users.find(([known, , id]) => (number === null ? known === name : Number(id) === number));
  const uid = number ?? idIn(line?.[2]);
  if (uid === 0) return OTHERWISE;
  if (uid === null) {
    throw new SandboxerError('SBX_UNSUPPORTED', `The image’s user "${name.slice(0, 60)}" is not in it.`, {
      backend: BACKEND,
      creation: 'not_created',
      remedy: 'Correct USER of the image, or give its number.',
    });
  }
  const groups =
    group === undefined || idIn(group) !== null ? [] : await table(client, container, '/etc/group', signal);
  const gid = idIn(group) ?? idIn(groups.find(([known]) => known === group)?.[2]) ?? idIn(line?.[3]) ?? uid;
  return `${uid}:${gid}`;
}
