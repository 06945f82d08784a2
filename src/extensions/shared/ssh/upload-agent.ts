import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { SandboxerError } from '../../../contract/errors/errors.ts';
import type { SshHost } from './ssh-host.ts';

/** The agents to choose from: `uname -m` of the host to the path of a binary. */
export type AgentBinaries = Readonly<Record<string, string>>;

/** Prints `present`, or the machine's architecture when the file is not there. */
const LOOK = '[ -x "$1" ] && echo present || uname -m';
/**
 * Writes the file beside its place, checks it and renames it: under its name it is always complete. Other users may run it and
 * not read it: the kernel then protects its memory from the moment it starts, also in a container where it is mounted.
 */
const PUT = [
  'umask 077',
  'mkdir -p "$(dirname "$1")" || exit 1',
  'cat >"$1.$$" && chmod 0711 "$1.$$" || { rm -f "$1.$$"; exit 1; }',
  '[ "$(wc -c <"$1.$$" | tr -d " ")" = "$2" ] && mv -f "$1.$$" "$1" || { rm -f "$1.$$"; exit 1; }',
].join('\n');

const done = new WeakMap<SshHost, Map<string, Promise<string>>>();

async function upload(host: SshHost, directory: string, binaries: AgentBinaries, signal?: AbortSignal) {
  const options = { creation: 'not_created', ...(signal ? { signal } : {}) } as const;
  for (const [machine, file] of Object.entries(binaries)) {
    const bytes = await readFile(file);
    const hash = createHash('sha256').update(bytes).digest('hex').slice(0, 16);
    const path = `${directory}/sandboxer-agent-${hash}`;
    const look = await host.run(['sh', '-c', LOOK, 'sh', path], options);
    const found = look.stdout.toString().trim().split('\n').at(-1);
    if (found === 'present') return path;
    if (found !== machine) continue;
    const put = await host.run(['sh', '-c', PUT, 'sh', path, String(bytes.length)], {
      ...options,
      stdin: bytes,
    });
    if (put.code === 0) return path;
    throw new SandboxerError(
      'SBX_EXTENSION_FAILED',
      `The agent could not be written to ${path} on ${host.id}.`,
      {
        creation: 'not_created',
        remedy: 'See whether the disk of the host is full and the directory is writable for our user.',
        members: { stderr: put.stderr.slice(-300) },
      },
    );
  }
  throw new SandboxerError('SBX_UNSUPPORTED', `There is no agent for the processor of host ${host.id}.`, {
    creation: 'not_created',
    remedy: 'Build the agent on that host (scripts/build-agent.sh) and name it in the configuration.',
  });
}

/**
 * Returns the path of the agent on the host, after an upload if need be: named by its content, so that versions exist side by
 * side.
 */
export function uploadAgent(
  host: SshHost,
  directory: string,
  binaries: AgentBinaries,
  signal?: AbortSignal,
): Promise<string> {
  const known = done.get(host) ?? new Map<string, Promise<string>>();
  done.set(host, known);
  const existing = known.get(directory);
  if (existing) return existing;
  const uploading = upload(host, directory, binaries, signal);
  known.set(directory, uploading);
  uploading.catch(() => known.delete(directory));
  return uploading;
}

/** Call it when the agent was found missing: a cleanup of the host has removed it. */
export function forgetAgent(host: SshHost, directory: string): void {
  done.get(host)?.delete(directory);
}
