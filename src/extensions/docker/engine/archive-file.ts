import { SandboxerError } from '../../../contract/errors/errors.ts';
import { readTreeArchive } from '../../../core/assets/tree-archive.ts';
import type { EngineClient } from './engine-client.ts';
import { BACKEND } from './engine-error.ts';

const MOST_BYTES = 1_048_576;

/** Reads one small file of a container, whether it runs or not. Links in the container never lead out of it. */
export async function bytesOfFile(
  client: EngineClient,
  container: string,
  path: string,
  signal: AbortSignal,
): Promise<Buffer> {
  const answer = await client.stream('GET', `/containers/${container}/archive`, { query: { path }, signal });
  try {
    for await (const { kind, size, body } of readTreeArchive(answer)) {
      if (kind !== 'file' || size > MOST_BYTES) break;
      const parts: Uint8Array[] = [];
      for await (const part of body) parts.push(part);
      return Buffer.concat(parts);
    }
  } finally {
    answer.destroy();
  }
  throw new SandboxerError('SBX_EXTENSION_FAILED', `${path} of the image cannot be read.`, {
    backend: BACKEND,
    creation: 'not_created',
  });
}
