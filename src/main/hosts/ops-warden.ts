import { execFile } from 'node:child_process';
import { mkdir, readFile, rename, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { SandboxerError } from '../../contract/errors/errors.ts';

export interface WardenOptions {
  /**
   * Command that reads our public key on its standard input, gets the name of the host as last argument, prints a certificate.
   */
  readonly command: readonly string[];
  readonly renewBeforeMs: number;
  /** Directory of our key and the certificates. */
  readonly directory: string;
  readonly now: () => number;
}

const TIMEOUT_MS = 30_000;

function run(argv: readonly string[], input: string): Promise<string> {
  const [program = '', ...args] = argv;
  return new Promise((resolve, reject) => {
    const child = execFile(program, args, { timeout: TIMEOUT_MS, maxBuffer: 65_536 }, (error, stdout) =>
      error ? reject(error) : resolve(stdout),
    );
    child.stdin?.on('error', () => {});
    child.stdin?.end(input);
  });
}

/** Parses `Valid: from 2026-11-16T01:00:00 to 2026-11-16T01:10:00`, in local time; `forever` has no end. */
function endOf(listing: string): number | null {
  const to = /^\s*Valid: (?:from \S+ to (\S+)|forever)/m.exec(listing);
  if (!to) return null;
  return to[1] === undefined ? Number.POSITIVE_INFINITY : Date.parse(to[1]);
}

/** Certificates that ops-warden signs for a key of our own, one per host, renewed before they expire. */
export class Warden {
  readonly #options: WardenOptions;
  readonly #ends = new Map<string, number>();
  readonly #renewing = new Map<string, Promise<void>>();

  constructor(options: WardenOptions) {
    this.#options = options;
  }

  async certificate(hostId: string): Promise<{ identityFile: string; certificateFile: string }> {
    const { directory, renewBeforeMs, now } = this.#options;
    const identityFile = join(directory, 'id_ed25519');
    const certificateFile = join(directory, `${hostId}-cert.pub`);
    if ((this.#ends.get(hostId) ?? 0) - renewBeforeMs <= now()) {
      const renewing = this.#renewing.get(hostId) ?? this.#renew(hostId, identityFile, certificateFile);
      this.#renewing.set(hostId, renewing);
      try {
        await renewing;
      } finally {
        this.#renewing.delete(hostId);
      }
    }
    return { identityFile, certificateFile };
  }

  async #renew(hostId: string, identityFile: string, certificateFile: string): Promise<void> {
    const { command, directory, now } = this.#options;
    try {
      await mkdir(directory, { recursive: true, mode: 0o700 });
      if (!(await stat(identityFile).catch(() => null)))
        await run(
          ['ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-C', 'sand-boxer', '-f', identityFile],
          '',
        );
      const certificate = await run([...command, hostId], await readFile(`${identityFile}.pub`, 'utf8'));
      await writeFile(`${certificateFile}.new`, certificate, { mode: 0o600 });
      const end = endOf(await run(['ssh-keygen', '-L', '-f', `${certificateFile}.new`], ''));
      if (end === null || end <= now()) throw new Error('what it printed is no valid certificate');
      await rename(`${certificateFile}.new`, certificateFile);
      this.#ends.set(hostId, end);
    } catch (error) {
      // The old certificate may still be valid: the host decides.
      if ((this.#ends.get(hostId) ?? 0) > now()) return;
      const why = error instanceof Error ? error.message.split('\n')[0] : 'it failed';
      throw new SandboxerError('SBX_BACKEND_AUTH', `ops-warden gave no certificate for ${hostId}: ${why}`, {
        creation: 'not_created',
        remedy: 'Run the command of hosts.ops_warden by hand; other hosts are not affected.',
      });
    }
  }
}
