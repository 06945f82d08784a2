import type { SandboxFiles } from '../../../core/ports/session.ts';

/** Files with the OOM kills of a control group: version 2, then version 1. */
const FILES = ['/sys/fs/cgroup/memory.events', '/sys/fs/cgroup/memory/memory.oom_control'];
const MOST_BYTES = 65_536;

/** Returns how many processes of this container the kernel has killed for want of memory, as seen inside. */
export async function oomKillsInside(files: SandboxFiles): Promise<number> {
  for (const path of FILES) {
    try {
      const parts: Uint8Array[] = [];
      let size = 0;
      const { body } = await files.read(path);
      for await (const part of body) {
        size += part.length;
        if (size > MOST_BYTES) break;
        parts.push(part);
      }
      const count = /^oom_kill (\d+)$/m.exec(Buffer.concat(parts).toString())?.[1];
      if (count !== undefined) return Number(count);
    } catch {
      // Control groups of the other version.
    }
  }
  return 0;
}
