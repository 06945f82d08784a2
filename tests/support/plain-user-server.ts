/**
 * An sshd that lets in a user who is not root, and who exists nowhere else: `/etc/passwd` has another line in a mount
 * namespace of its own.
 */
import { spawnSync } from 'node:child_process';
import { chmodSync, chownSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { SshServer } from '../../src/testing/ssh-server.ts';
import { startSshServer } from '../../src/testing/ssh-server.ts';

export const PLAIN_UID = 41_957;
export const PLAIN_USER = 'sandboxer-plain';

/** Why there can be none here, or `null`. */
export function whyNoPlainUser(): string | null {
  if (process.getuid?.() !== 0) return 'only root can let in another user';
  return spawnSync('unshare', ['--mount', 'true']).status === 0 ? null : 'there are no mount namespaces';
}

export async function startPlainUserServer(): Promise<SshServer> {
  const directory = mkdtempSync(join(tmpdir(), 'sandboxer-plain-'));
  const home = join(directory, 'home');
  mkdirSync(home);
  chmodSync(directory, 0o755);
  chownSync(home, PLAIN_UID, PLAIN_UID);
  const passwd = join(directory, 'passwd');
  const line = `${PLAIN_USER}:x:${PLAIN_UID}:${PLAIN_UID}::${home}:/bin/sh\n`;
  writeFileSync(passwd, readFileSync('/etc/passwd', 'utf8') + line);
  const inside = 'mount --bind "$0" /etc/passwd && exec "$@"';
  return await startSshServer({
    // Names of the machine are none of its business: an attempt to change them is made in a namespace of its own.
    wrapper: ['unshare', '--mount', '--uts', 'sh', '-c', inside, passwd],
    user: PLAIN_USER,
    environment: { HOME: home },
    scratch: directory,
  });
}
