import { homedir } from 'node:os';
import { join } from 'node:path';

export interface ServerAddress {
  /** Address as a person writes it. */
  readonly text: string;
  readonly secure: boolean;
  readonly socketPath: string | null;
  readonly hostname: string;
  readonly port: number | null;
  /** Path in front of `/v1`, without a slash at the end. */
  readonly prefix: string;
}

/** Directory of the embedded default's state. */
export function defaultStateDir(env: NodeJS.ProcessEnv): string {
  if (env.SANDBOXER_STATE_DIR) return env.SANDBOXER_STATE_DIR;
  return join(env.XDG_DATA_HOME || join(homedir(), '.local', 'share'), 'sandboxer');
}

export function defaultSocketPath(env: NodeJS.ProcessEnv): string {
  return env.SANDBOXER_SOCKET || join(defaultStateDir(env), 'sandboxer.sock');
}

/** Parses `http://…`, `https://…` or `unix:/path/of.sock`. */
export function parseServerAddress(text: string): ServerAddress {
  if (text.startsWith('unix:')) {
    const socketPath = text.slice('unix:'.length).replace(/^\/\/(?=\/)/, '');
    if (!socketPath.startsWith('/')) throw new TypeError(`"${text}" has no absolute path: write unix:/path.`);
    return { text, secure: false, socketPath, hostname: 'localhost', port: null, prefix: '' };
  }
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
    throw new TypeError(`"${text}" is not a server address: write http://…, https://… or unix:/path.`);
  }
  return {
    text: `${url.protocol}//${url.host}${url.pathname.replace(/\/+$/, '')}`,
    secure: url.protocol === 'https:',
    socketPath: null,
    hostname: url.hostname.replace(/^\[|\]$/g, ''),
    port: url.port === '' ? null : Number(url.port),
    prefix: url.pathname.replace(/\/+$/, ''),
  };
}
