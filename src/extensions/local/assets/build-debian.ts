/** Builds a root file system by Debian's own tool. */
import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { SandboxerError } from '../../../contract/errors/errors.ts';
import type { DebianRecipe } from '../../../core/ports/extension.ts';
import { debianSources } from './debian-sources.ts';

const BUILD_MS = 30 * 60_000;
/** Variables that the scripts of packages get: they need no others, and must not have them. */
const HANDED_ON = ['PATH', 'TMPDIR', 'http_proxy', 'https_proxy', 'ftp_proxy', 'no_proxy'];

function environment(): Record<string, string> {
  const own = HANDED_ON.flatMap((name) => {
    const value = process.env[name];
    return value === undefined ? [] : [[name, value] as const];
  });
  return { LC_ALL: 'C.UTF-8', ...Object.fromEntries(own) };
}

/** Returns the package sources of this machine as files that mmdebstrap takes for mirrors; it knows a public one itself. */
function mirrors(suite: string, folder: string): string[] {
  const { lines, paragraphs } = debianSources(suite);
  return [
    { name: 'apt.list', parts: lines, between: '\n' },
    { name: 'apt.sources', parts: paragraphs, between: '\n\n' },
  ].flatMap(({ name, parts, between }) => {
    if (parts.length === 0) return [];
    const path = join(folder, name);
    writeFileSync(path, `${parts.join(between)}\n`);
    return [path];
  });
}

function explained(error: unknown): SandboxerError {
  const { code, stderr = '' } = error as { code?: string | number; stderr?: string };
  const absent = code === 'ENOENT';
  const said = stderr.trim().split('\n').slice(-3).join(' ').slice(0, 500);
  return new SandboxerError(
    absent ? 'SBX_UNSUPPORTED' : 'SBX_EXTENSION_FAILED',
    absent ? 'mmdebstrap is not installed.' : `mmdebstrap failed: ${said}`,
    {
      backend: 'ext.local',
      retryable: false,
      remedy: absent
        ? 'Install it (Debian: apt-get install mmdebstrap), or import an image.'
        : 'Check the suite and the names of the packages, and that the package sources can be reached.',
    },
  );
}

/** Builds a tar archive in the folder and returns its path. */
export async function buildDebian(
  { suite, packages }: DebianRecipe,
  folder: string,
  signal: AbortSignal,
): Promise<string> {
  const path = join(folder, 'built.tar');
  const args = [
    ...['--quiet', '--variant=minbase'],
    // A build lost in a power cut is repeated: no file needs fsync.
    '--dpkgopt=force-unsafe-io',
    '--aptopt=Acquire::Languages "none"',
    ...(packages.length === 0 ? [] : [`--include=${packages.join(',')}`]),
    ...[suite, path, ...mirrors(suite, folder)],
  ];
  const options = { signal, timeout: BUILD_MS, maxBuffer: 1 << 20, env: environment() };
  try {
    await promisify(execFile)('mmdebstrap', args, options);
  } catch (error) {
    signal.throwIfAborted();
    throw explained(error);
  }
  return path;
}
