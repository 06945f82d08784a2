import { createHash } from 'node:crypto';
import { SandboxerError } from '../../../contract/errors/errors.ts';
import type { Creation } from '../../../contract/values/state.ts';

const MAX_SHOWN = 300;

const KEY_CHANGED =
  /REMOTE HOST IDENTIFICATION HAS CHANGED|Host key verification failed|No .* host key is known/i;
const REFUSED_US =
  /Permission denied|Too many authentication failures|no supported authentication methods|Load key .*: /i;

const NEVER_STOOD =
  /connect to host|Could not resolve hostname|kex_exchange_identification|banner exchange|UNPROTECTED PRIVATE KEY/i;

/** Returns one printable line: most of it was written by another machine. */
function shown(text: string): string {
  return text
    .replaceAll(/[\p{C}\p{Zl}\p{Zp}]+/gu, ' ')
    .trim()
    .slice(-MAX_SHOWN);
}

export interface SshFailureTerms {
  /** `creation` of an error after the connection was established. */
  readonly afterwards: Creation;
  /** Public keys that the host is registered with, as `ssh-ed25519 AAAA…`. */
  readonly pinned: readonly string[];
}

/** Formats a key as OpenSSH does: `ED25519 SHA256:…`. */
function fingerprintOf(key: string): string {
  const [type = '', blob = ''] = key
    .trim()
    .replace(/^@\S+\s+/, '')
    .split(/\s+/);
  const name = type.replace(/^(?:ssh-|ecdsa-sha2-.*)/, (start) => (start === 'ssh-' ? '' : 'ecdsa'));
  const digest = createHash('sha256').update(Buffer.from(blob, 'base64')).digest('base64').replace(/=+$/, '');
  return `${name.toUpperCase()} SHA256:${digest}`;
}

/** Returns the registered keys, and the one that the host offered: ssh's own message names a file that is gone by then. */
function keysOf(said: string, pinned: readonly string[]): string {
  const [, type] =
    /fingerprint for the (\S+) key|No (\S+) host key is known/i.exec(said)?.filter(Boolean) ?? [];
  const [fingerprint = 'one that is not pinned'] = /SHA256:[A-Za-z0-9+/]{43}/.exec(said) ?? [];
  const offered = [type, fingerprint].filter(Boolean).join(' ');
  return `pinned ${pinned.map(fingerprintOf).join(', ')}, offered ${offered}.`;
}

/**
 * Explains a failure of OpenSSH itself, from its messages. Without an established connection no object can exist on the host;
 * afterwards `creation` is the caller's.
 */
export function sshFailure(
  hostId: string,
  said: string,
  { afterwards, pinned }: SshFailureTerms,
): SandboxerError {
  const why = shown(said) || 'ssh ended without a word';
  const early = KEY_CHANGED.test(said) || REFUSED_US.test(said) || NEVER_STOOD.test(said);
  const creation = early ? 'not_created' : afterwards;
  if (KEY_CHANGED.test(said))
    return new SandboxerError('SBX_HOST_KEY_CHANGED', `Host ${hostId}: ${keysOf(said, pinned)}`, {
      creation,
      remedy: `Find out why. If the offered key is right, register it: sandboxer hosts add ${hostId} --host-key …`,
    });
  if (REFUSED_US.test(said))
    return new SandboxerError('SBX_BACKEND_AUTH', `Host ${hostId} refused our key: ${why}`, {
      creation,
      remedy: 'Renew the certificate or the key of this host; other hosts are not affected.',
    });
  return new SandboxerError('SBX_HOST_UNREACHABLE', `Host ${hostId}: ${why}`, { creation });
}

export function sshTimeout(hostId: string, seconds: number, creation: Creation): SandboxerError {
  return new SandboxerError('SBX_TIMEOUT', `Host ${hostId} did not answer within ${seconds} s.`, {
    creation,
  });
}
