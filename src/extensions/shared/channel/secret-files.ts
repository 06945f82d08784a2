/**
 * Writes secrets into a file system in memory at `/run/secrets`, through the channel: on no disk, in no snapshot, in no argument
 * and no configuration. Those for the environment are stored there too, for later connections.
 */
import { z } from 'zod';
import { SandboxerError } from '../../../contract/errors/errors.ts';
import type { ResolvedSecret } from '../../../core/ports/extension.ts';
import type { SandboxFiles, SandboxSession } from '../../../core/ports/session.ts';

const DIRECTORY = '/run/secrets';
const ENVIRONMENT = `${DIRECTORY}/.environment`;
const Environment = z.record(z.string(), z.string());

async function* once(text: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(text);
}

function filesOf(session: SandboxSession): SandboxFiles {
  if (session.files === undefined) throw new Error('The channel has no files.');
  return session.files;
}

export async function deliverSecrets(
  session: SandboxSession,
  secrets: readonly ResolvedSecret[],
): Promise<void> {
  const files = filesOf(session);
  const byFile = secrets.filter(({ delivery }) => delivery === 'file');
  const byEnv = secrets.filter(({ delivery }) => delivery === 'env');
  try {
    for (const { name, value } of byFile) {
      await files.write(`${DIRECTORY}/${name}`, once(value), { mode: 0o400, toMemory: true });
    }
    const environment = Object.fromEntries(byEnv.map(({ name, value }) => [name, value]));
    await files.write(ENVIRONMENT, once(JSON.stringify(environment)), { mode: 0o400, toMemory: true });
  } finally {
    await session.close();
  }
}

export async function secretEnvironment(session: SandboxSession): Promise<Record<string, string>> {
  const { body } = await filesOf(session)
    .read(ENVIRONMENT)
    .catch((error: unknown) => {
      // The sandbox was stopped and started again: files in its memory are gone.
      if (error instanceof SandboxerError && error.code === 'SBX_PATH_NOT_FOUND') return { body: [] };
      throw error;
    });
  const parts: Uint8Array[] = [];
  for await (const part of body) parts.push(part);
  return parts.length === 0 ? {} : Environment.parse(JSON.parse(Buffer.concat(parts).toString()));
}
