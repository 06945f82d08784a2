import type { InputTrees } from '../../../src/core/ports/inputs.ts';
import { archiveOf, textEntry } from '../../../src/extensions/compose-ssh/stack/ship-tree.ts';

/** A repository that takes a while to come: `pause` is awaited in the middle of it. */
export function slowRepo(compose: string, pause: () => Promise<void>): InputTrees {
  const big = 'x'.repeat(1_000_000);
  let opened = 0;
  return {
    list: [{ name: 'repo', uploadId: 'u', digest: 'sha256:0', origin: { kind: 'upload' } }],
    open: async () => {
      const entries = [
        textEntry('compose.yaml', compose),
        ...Array.from({ length: 8 }, (_, n) => textEntry(`part-${n}`, big)),
      ];
      opened += 1;
      if (opened === 1) return archiveOf(entries);
      return (async function* () {
        let sent = 0;
        for await (const chunk of archiveOf(entries)) {
          yield chunk;
          sent += chunk.length;
          if (sent > 3_000_000) {
            sent = Number.NEGATIVE_INFINITY;
            await pause();
          }
        }
      })();
    },
  };
}
