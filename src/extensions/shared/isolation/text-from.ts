import type { SandboxFiles } from '../../../core/ports/session.ts';

const MOST_BYTES = 262_144;

/** Returns the beginning of a small file inside; empty when it cannot be read. */
export async function textFrom(files: SandboxFiles, path: string): Promise<string> {
  try {
    const parts: Uint8Array[] = [];
    let size = 0;
    for await (const part of (await files.read(path)).body) {
      size += part.length;
      if (size > MOST_BYTES) break;
      parts.push(part);
    }
    return Buffer.concat(parts).toString('utf8');
  } catch {
    return '';
  }
}

/** Returns the release of the kernel that runs the sandbox; kernels other than Linux have this file, too. */
export async function kernelInside(files: SandboxFiles): Promise<string> {
  return /^Linux version (\S+)/.exec(await textFrom(files, '/proc/version'))?.[1] ?? '';
}
