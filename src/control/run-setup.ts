import { SandboxerError } from '../contract/errors.ts';
import type { Extension, ExtensionContext, Handle } from '../core/extension.ts';
import type { Recipe } from '../core/recipe.ts';

const KEPT_BYTES = 2_000;

/** Runs the recipe's setup commands in order. The first that fails ends the establishment, with the end of its output. */
export async function runSetup(
  extension: Extension,
  handle: Handle,
  recipe: Recipe,
  context: ExtensionContext,
  cwd: string | null,
): Promise<void> {
  const session = await extension.connect(handle, context);
  try {
    for (const [index, command] of recipe.setupRun.entries()) {
      const process = await session.spawn(
        {
          argv: ['/bin/sh', '-c', command],
          env: recipe.variables,
          cwd,
          user: null,
          timeoutSeconds: null,
          terminal: null,
          stdin: false,
          background: false,
        },
        { signal: context.signal },
      );
      let tail = '';
      for await (const chunk of process.output) {
        if (chunk.stream !== 'gap')
          tail = (tail + Buffer.from(chunk.data).toString('utf8')).slice(-KEPT_BYTES);
      }
      const { code } = await process.exit;
      if (code === 0) continue;
      throw new SandboxerError(
        'SBX_EXTENSION_FAILED',
        `setup.run[${index}] ended with ${code}: ${tail.trim() || 'no output'}`,
        {
          creation: 'created',
          field: `setup.run[${index}]`,
          retryable: false,
          remedy: 'Correct the setup command of the profile.',
        },
      );
    }
  } finally {
    await session.close();
  }
}
