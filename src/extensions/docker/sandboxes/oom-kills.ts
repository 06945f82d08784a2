import type { SandboxFiles } from '../../../core/ports/session.ts';

/** Where the kernel tells a control group of its own kills: version 2, then version 1. */
const FILES = ['/sys/fs/cgroup/memory.events', '/sys/fs/cgroup/memory/memory.oom_control'];
const MOST_BYTES = 65_536;

/** How often the kernel has killed something in this container for want of memory, as seen inside. */
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
      // The other version.
    }
  }
  return 0;
}
