import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import { daemonFiles } from '../../daemon/daemon-files.ts';
import { CommandFailure } from '../../failures/command-failure.ts';
import type { Invocation } from '../../invocation/invocation.ts';
import { argvOf } from '../../terminal/exec-options.ts';
import { PREPARE_SSHD } from './ssh-inside.ts';

interface Prepared {
  readonly user: string;
  readonly alias: string;
  readonly keyFile: string;
  readonly knownHosts: string;
}

const NO_SSHD = 127;
const KEYGEN = 'ssh-keygen';

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** Key of this user for sandboxes alone. */
function ownKey(directory: string): string {
  const file = join(directory, 'id_ed25519');
  if (existsSync(file)) return file;
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  try {
    execFileSync(KEYGEN, ['-q', '-t', 'ed25519', '-N', '', '-C', 'sandboxer', '-f', file]);
  } catch (cause) {
    throw new CommandFailure('No ssh key could be made.', {
      code: 'SBX_CLI_SSH',
      remedy: 'Install the OpenSSH client (ssh and ssh-keygen).',
      cause,
    });
  }
  return file;
}

async function prepare(invocation: Invocation, id: string): Promise<Prepared> {
  const directory = join(daemonFiles(invocation.env).stateDir, 'ssh');
  const keyFile = ownKey(directory);
  const client = await invocation.client();
  const env = { PUBLIC_KEY: readFileSync(`${keyFile}.pub`, 'utf8').trim() };
  const work = client.exec(id, { command: ['/bin/sh', '-c', PREPARE_SSHD], env }).result();
  const { exit, stdout, stderr } = await invocation.progress(`Preparing ssh in ${id}`).during(work);
  if (exit.code === NO_SSHD) {
    throw new CommandFailure(`There is no sshd in ${id}.`, {
      code: 'SBX_CLI_NO_SSHD',
      remedy: `Use sandboxer shell ${id} and sandboxer cp, or an image with openssh-server.`,
    });
  }
  const [user = '', hostKey = ''] = stdout.split('\n');
  if (exit.code !== 0 || hostKey === '') {
    throw new CommandFailure(`sshd could not be prepared in ${id}: ${stderr.trim() || `exit ${exit.code}`}`, {
      code: 'SBX_CLI_SSH',
      remedy: `Use sandboxer shell ${id} instead.`,
    });
  }
  const alias = `sandboxer-${id}`;
  const knownHosts = join(directory, `known_hosts.${id}`);
  writeFileSync(knownHosts, `${alias} ${hostKey}\n`, { mode: 0o600 });
  return { user, alias, keyFile, knownHosts };
}

/** Returns the command by which ssh calls this one; `%` has a meaning in ssh. */
function proxyCommand(invocation: Invocation, id: string): string {
  const { url, workspace } = invocation.options;
  const words = [
    process.execPath,
    '--disable-warning=ExperimentalWarning',
    '--',
    process.argv[1] ?? '',
    'proxy',
  ];
  if (url !== undefined) words.push('--url', url);
  if (workspace !== undefined) words.push('--workspace', workspace);
  return [...words, id].map(quoted).join(' ').replaceAll('%', '%%');
}

function optionsOf(invocation: Invocation, id: string, prepared: Prepared): [string, string][] {
  return [
    ['ProxyCommand', proxyCommand(invocation, id)],
    ['User', prepared.user],
    ['HostKeyAlias', prepared.alias],
    ['UserKnownHostsFile', prepared.knownHosts],
    ['StrictHostKeyChecking', 'yes'],
    ['IdentityFile', prepared.keyFile],
    ['IdentitiesOnly', 'yes'],
  ];
}

function runSsh(args: readonly string[]): Promise<number> {
  return new Promise((resolve, reject) => {
    const child = spawn('ssh', args, { stdio: 'inherit' });
    // Ctrl-C goes to ssh, which has the terminal; this command ends when ssh does.
    process.on('SIGINT', () => {});
    child.once('error', (cause) =>
      reject(
        new CommandFailure(`ssh cannot be started: ${cause.message}`, {
          code: 'SBX_CLI_SSH',
          remedy: 'Install the OpenSSH client.',
          cause,
        }),
      ),
    );
    child.once('exit', (code) => resolve(code ?? 1));
  });
}

export function define(command: Command, invocation: Invocation): void {
  command
    .argument('<id>', 'the sandbox')
    .argument('[args...]', 'arguments of ssh: a command, -L …')
    .passThroughOptions()
    .option('--print-config', 'print a Host entry for ~/.ssh/config instead of connecting')
    .action(async (id: string, words: string[], flags: { readonly printConfig?: boolean }) => {
      const { printer } = invocation;
      const prepared = await prepare(invocation, id);
      const options = optionsOf(invocation, id, prepared);
      // Words behind the id go to ssh, except `--print-config`.
      if (flags.printConfig || words[0] === '--print-config') {
        const lines = options.map(([name, value]) => `  ${name} ${value}`);
        printer.result({ host: prepared.alias, options: Object.fromEntries(options) }, () =>
          printer.line([`Host ${prepared.alias}`, ...lines].join('\n')),
        );
        return;
      }
      const flagsOfSsh = options.flatMap(([name, value]) => ['-o', `${name}=${value}`]);
      invocation.exitCode = await runSsh([...flagsOfSsh, prepared.alias, ...argvOf(words)]);
    });
}
