/**
 * Connects to an engine on another machine by the system's OpenSSH: each connection is one command there that passes bytes on to
 * the engine's socket, over a shared ssh connection.
 */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { promisify } from 'node:util';
import { effectiveConfig } from '../../shared/ssh/effective-config.ts';
import { SshHost } from '../../shared/ssh/ssh-host.ts';
import type { SshEndpoint } from './endpoint.ts';
import type { EngineConnector } from './engine-connector.ts';
import { EngineUnreachable } from './engine-error.ts';

const run = promisify(execFile);

export interface SshOptions {
  /** Pinned keys; without any, those that the user of the server already trusts. */
  readonly hostKeys?: readonly string[];
  readonly identityFile?: string | null;
  readonly certificateFile?: string | null;
  /** The operator's configuration file. Default: `~/.ssh/config`. */
  readonly configFile?: string | null;
}

/** Docker's own command for access through ssh, which Podman has too. */
const DIAL =
  'if command -v docker >/dev/null 2>&1; then exec docker "$@" system dial-stdio; fi; exec podman system dial-stdio';

function ownConfig(): string | null {
  const path = join(homedir(), '.ssh', 'config');
  return existsSync(path) ? path : null;
}

/** Returns how OpenSSH resolves this name: the name it searches among known hosts, and in which files. */
async function resolved(host: string, configFile: string | null): Promise<{ name: string; files: string[] }> {
  const settings = await effectiveConfig(host, configFile);
  const files = `${settings.get('userknownhostsfile') ?? ''} ${settings.get('globalknownhostsfile') ?? ''}`;
  const alias = settings.get('hostkeyalias');
  const name = alias ?? settings.get('hostname') ?? host;
  return {
    name,
    files: files
      .split(' ')
      .filter((file) => file !== '')
      .map((file) => file.replace(/^~(?=\/)/, homedir())),
  };
}

/** Returns the keys of a host that the user of this server has accepted in their own `ssh`. */
async function trustedKeys({ host, port }: SshEndpoint, configFile: string | null): Promise<string[]> {
  const { name, files } = await resolved(host, configFile);
  const entry = port === null || port === 22 ? name : `[${name}]:${port}`;
  const keys: string[] = [];
  for (const file of files.filter((path) => existsSync(path))) {
    const { stdout } = await run('ssh-keygen', ['-F', entry, '-f', file]).catch(() => ({ stdout: '' }));
    for (const line of stdout.split('\n')) {
      if (line.startsWith('#') || line.startsWith('@') || line === '') continue;
      keys.push(line.split(' ').slice(1, 3).join(' '));
    }
  }
  return keys;
}

/** Adds the socket methods that `http.Agent` calls on every connection it keeps. */
function asSocket(stream: Duplex): Duplex {
  const same = () => stream;
  return Object.assign(stream, { ref: same, unref: same, setKeepAlive: same, setTimeout: same });
}

export class SshConnector implements EngineConnector {
  readonly #endpoint: SshEndpoint;
  readonly #options: SshOptions;
  #host: Promise<SshHost> | null = null;

  constructor(endpoint: SshEndpoint, options: SshOptions) {
    this.#endpoint = endpoint;
    this.#options = options;
  }

  async open(): Promise<Duplex> {
    const { socket } = this.#endpoint;
    const place = socket === null ? [] : ['--host', `unix://${socket}`];
    this.#host ??= this.#connect();
    const host = await this.#host.catch((error: unknown) => {
      this.#host = null;
      throw error;
    });
    const { process, exit, kill } = await host.open(['sh', '-c', DIAL, 'sh', ...place]);
    const stream = asSocket(process.duplex());
    stream.once('close', kill);
    exit.then(
      (code) => {
        if (code === 0) return;
        const said = process.stderr.trim();
        stream.destroy(new EngineUnreachable('closed', `The engine was lost: ${said || `code ${code}`}`));
      },
      (error: Error) => stream.destroy(error),
    );
    return stream;
  }

  async close(): Promise<void> {
    await (await this.#host?.catch(() => null))?.close();
  }

  async #connect(): Promise<SshHost> {
    const { host, user, port } = this.#endpoint;
    const { hostKeys = [], identityFile = null, certificateFile = null } = this.#options;
    const configFile = this.#options.configFile ?? ownConfig();
    const keys = hostKeys.length > 0 ? hostKeys : await trustedKeys(this.#endpoint, configFile);
    if (keys.length === 0) {
      throw new EngineUnreachable(
        'refused',
        `No key of ${host} is known: write it to extensions.docker.ssh.host_keys, or log in once with ssh.`,
      );
    }
    const access = {
      destination: host,
      port,
      user,
      hostKeys: keys,
      identityFile,
      certificateFile,
      configFile,
    };
    return new SshHost(host, { ...access, jumps: [] });
  }
}
