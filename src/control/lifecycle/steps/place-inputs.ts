import { SandboxerError } from '../../../contract/errors/errors.ts';
import type { Extension, ExtensionContext, Handle } from '../../../core/ports/extension.ts';
import type { InputTrees } from '../../../core/ports/inputs.ts';
import { WORKSPACE } from '../../../core/ports/inputs.ts';

/** Unpacks the file trees of a sandbox into its workspace, over its session. A repetition changes nothing. */
export async function placeInputs(
  extension: Extension,
  handle: Handle,
  trees: InputTrees,
  context: ExtensionContext,
): Promise<void> {
  if (trees.list.length === 0) return;
  const session = await extension.connect(handle, context);
  const { signal } = context;
  try {
    const { files } = session;
    if (!files) {
      throw new SandboxerError('SBX_UNSUPPORTED', `${extension.header.id} has no files.`, {
        creation: 'created',
        remedy: 'Leave the file inputs out, or choose a backend with files.',
      });
    }
    await files.mkdir(WORKSPACE, { parents: true, mode: 0o755, signal });
    for (const { name } of trees.list) {
      await files.upload(WORKSPACE, await trees.open(name, { signal }), { signal });
    }
  } finally {
    await session.close();
  }
}
