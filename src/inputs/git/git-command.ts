/**
 * The command line and environment of git: nothing of the machine's configuration, no hook, no prompt, one protocol, one host,
 * one address.
 */
import { isIP } from 'node:net';
import { join } from 'node:path';
import type { GitRef } from '../../core/recipe/git-ref.ts';
import type { GitOptions } from './git-options.ts';

export interface GitCall {
  readonly git: GitRef;
  readonly address: string;
  /** A private directory: home, askpass and key lie in it. */
  readonly directory: string;
  readonly credential: string | null;
}

export const ASKPASS = 'askpass';
export const KEY = 'key';

function bare(host: string): string {
  return host.replace(/^\[|\]$/g, '');
}

export function gitSettings({ git, address }: GitCall, { caFile }: GitOptions): string[] {
  const { protocol, host, port } = git;
  const literal = isIP(bare(host)) !== 0;
  const shown = isIP(address) === 6 ? `[${address}]` : address;
  const settings = {
    'protocol.allow': 'never',
    [`protocol.${protocol}.allow`]: 'always',
    'core.hooksPath': '/dev/null',
    'core.fsmonitor': 'false',
    'credential.helper': '',
    'submodule.recurse': 'false',
    'fetch.recurseSubmodules': 'false',
    'transfer.bundleURI': 'false',
    'transfer.credentialsInUrl': 'die',
    'gc.auto': '0',
    'maintenance.auto': 'false',
    // A redirect could lead anywhere with the credential. A server that redirects causes an error that says so.
    'http.followRedirects': 'false',
    'http.sslVerify': 'true',
    'http.proxy': '',
    'http.lowSpeedLimit': '1000',
    'http.lowSpeedTime': '30',
    'tar.umask': '0022',
    ...(literal ? {} : { 'http.curloptResolve': `${host}:${port}:${shown}` }),
    ...(caFile === null ? {} : { 'http.sslCAInfo': caFile }),
  };
  return Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

function sshCommand({ git, address, directory, credential }: GitCall, options: GitOptions): string {
  const { host, port } = git;
  const known = {
    HostName: address,
    HostKeyAlias: port === 22 ? bare(host) : `[${bare(host)}]:${port}`,
    UserKnownHostsFile: options.knownHostsFile ?? '/dev/null',
    GlobalKnownHostsFile: '/dev/null',
    StrictHostKeyChecking: 'yes',
    UpdateHostKeys: 'no',
    BatchMode: 'yes',
    IdentitiesOnly: 'yes',
    IdentityAgent: 'none',
    IdentityFile: credential === null ? 'none' : join(directory, KEY),
    ProxyCommand: 'none',
    PermitLocalCommand: 'no',
    ForwardAgent: 'no',
    ClearAllForwardings: 'yes',
    ConnectTimeout: '15',
    ServerAliveInterval: '15',
  };
  const words = Object.entries(known).map(([name, value]) => `-o ${quoted(`${name}=${value}`)}`);
  return `ssh -F /dev/null ${words.join(' ')}`;
}

export function gitEnvironment(call: GitCall, options: GitOptions): NodeJS.ProcessEnv {
  const { git, directory, credential } = call;
  return {
    PATH: process.env.PATH ?? '/usr/bin:/bin',
    LC_ALL: 'C',
    HOME: directory,
    XDG_CONFIG_HOME: directory,
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_ATTR_NOSYSTEM: '1',
    GIT_ALLOW_PROTOCOL: git.protocol,
    GIT_PROTOCOL_FROM_USER: '0',
    GIT_TERMINAL_PROMPT: '0',
    GIT_OPTIONAL_LOCKS: '0',
    GIT_NO_LAZY_FETCH: '1',
    GIT_SSH_VARIANT: 'ssh',
    GIT_SSH_COMMAND: git.protocol === 'ssh' ? sshCommand(call, options) : 'false',
    GIT_ASKPASS: git.protocol === 'https' && credential !== null ? join(directory, ASKPASS) : 'false',
    SSH_ASKPASS: 'false',
    ...(git.protocol === 'https' && credential !== null
      ? { SANDBOXER_GIT_USER: git.user ?? 'git', SANDBOXER_GIT_PASSWORD: credential }
      : {}),
  };
}
