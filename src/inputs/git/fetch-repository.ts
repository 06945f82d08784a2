import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { join } from 'node:path';
import { SandboxerError } from '../../contract/errors/errors.ts';
import type { FetchedTree } from '../../core/ports/inputs.ts';
import type { GitRef } from '../../core/recipe/git-ref.ts';
import type { GitCall } from './git-command.ts';
import { ASKPASS, gitEnvironment, gitSettings, KEY } from './git-command.ts';
import type { GitOptions } from './git-options.ts';
import { runGit, streamGit } from './run-git.ts';

const ASKPASS_SCRIPT = `#!/bin/sh
case "$1" in
Username*) printf '%s\\n' "$SANDBOXER_GIT_USER" ;;
*) printf '%s\\n' "$SANDBOXER_GIT_PASSWORD" ;;
esac
`;

function refused(detail: string, remedy: string): SandboxerError {
  return new SandboxerError('SBX_REF_REFUSED', detail, { creation: 'not_created', remedy });
}

/** Resolves the host name once and checks the address; git gets the address and resolves nothing. */
function addressOf({ host }: GitRef, { lookup }: GitOptions): Promise<string> {
  const name = host.replace(/^\[|\]$/g, '');
  return new Promise((resolve, reject) => {
    lookup(name, { family: isIP(name) }, (error, address) => {
      const unknown = error !== null && error.code !== undefined;
      if (error === null) resolve(String(address));
      else if (unknown) {
        const detail = `The host ${host} is not known.`;
        reject(new SandboxerError('SBX_FETCH_FAILED', detail, { creation: 'not_created' }));
      } else {
        const detail = `The host ${host} does not resolve to a public address.`;
        reject(refused(detail, 'Name a public host, or have the operator set git.allow_private.'));
      }
    });
  });
}

async function prepare({ directory, git, credential }: GitCall): Promise<void> {
  if (credential === null) return;
  if (git.protocol === 'ssh') {
    const key = credential.endsWith('\n') ? credential : `${credential}\n`;
    await writeFile(join(directory, KEY), key, { mode: 0o600 });
    return;
  }
  await writeFile(join(directory, ASKPASS), ASKPASS_SCRIPT);
  await chmod(join(directory, ASKPASS), 0o700);
}

interface RepositoryFetch {
  readonly git: GitRef;
  readonly credential: string | null;
  readonly options: GitOptions;
  readonly directory: string;
  readonly signal: AbortSignal | undefined;
}

/**
 * Fetches one commit of a repository into `directory` and hands its tree on as an archive. There is no checkout: no
 * filter, no attribute and no submodule of the repository is acted on.
 */
export async function fetchRepository<T>(
  { git, credential, options, directory, signal: outer }: RepositoryFetch,
  use: (tree: FetchedTree) => Promise<T>,
): Promise<T> {
  if (git.protocol === 'ssh' && options.knownHostsFile === null) {
    throw refused(
      'No ssh host is known to this server.',
      'Have the operator set git.known_hosts, or use https.',
    );
  }
  const timeout = AbortSignal.timeout(options.timeoutMs);
  const signal = outer ? AbortSignal.any([outer, timeout]) : timeout;
  const call: GitCall = { git, credential, directory, address: await addressOf(git, options) };
  await prepare(call);
  const repository = join(directory, 'repository');
  await mkdir(repository);
  const env = gitEnvironment(call, options);
  const settings = gitSettings(call, options);
  const run = { cwd: repository, env, signal, mostBytes: options.mostBytes };
  try {
    await runGit([...settings, 'init', '--quiet', '--bare', '--template=', '.'], run);
    const fetch = ['fetch', '--quiet', '--depth=1', '--no-tags', '--no-recurse-submodules', '--no-auto-gc'];
    await runGit([...settings, ...fetch, '--', git.url, git.ref ?? 'HEAD'], run);
    const commit = (await runGit(['rev-parse', '--verify', 'FETCH_HEAD^{commit}'], run)).trim();
    // Comes before what the repository itself says of its files.
    await mkdir(join(repository, 'info'), { recursive: true });
    await writeFile(join(repository, 'info', 'attributes'), '* -export-ignore -export-subst\n');
    const archive = streamGit([...settings, 'archive', '--format=tar', commit], run);
    return await use({ commit, archive });
  } catch (error) {
    if (!timeout.aborted || error instanceof SandboxerError) throw error;
    const seconds = options.timeoutMs / 1000;
    throw new SandboxerError('SBX_FETCH_FAILED', `The repository did not come within ${seconds} s.`, {
      creation: 'not_created',
    });
  }
}
