/** Script that runs in the sandbox for `sandboxer ssh`: an sshd of its own user, on the exec channel, with keys of its own. */

const PLACE = 'd="$HOME/.sandboxer-ssh"; [ -w "$HOME" ] || d="/tmp/.sandboxer-ssh-$(id -u)"';
const FIND_SSHD = 's=$(command -v sshd || true); [ -n "$s" ] || s=/usr/sbin/sshd';

/** Exits with 127 without an sshd; otherwise prints the user and the host key. Our key comes in PUBLIC_KEY. */
export const PREPARE_SSHD = [
  FIND_SSHD,
  '[ -x "$s" ] && command -v ssh-keygen >/dev/null || exit 127',
  PLACE,
  'umask 077',
  'mkdir -p "$d"',
  '[ -f "$d/host_key" ] || ssh-keygen -q -t ed25519 -N "" -f "$d/host_key" || exit 1',
  'printf "%s\\n" "$PUBLIC_KEY" > "$d/authorized_keys"',
  '[ "$(id -u)" != 0 ] || mkdir -p /run/sshd',
  'id -un',
  'cut -d" " -f1,2 "$d/host_key.pub"',
].join('\n');

export const RUN_SSHD = [
  FIND_SSHD,
  PLACE,
  'exec "$s" -i -f /dev/null -o HostKey="$d/host_key" -o AuthorizedKeysFile="$d/authorized_keys" -o StrictModes=no ' +
    '-o UsePAM=no -o PidFile=none -o PermitRootLogin=prohibit-password -o PasswordAuthentication=no ' +
    '-o KbdInteractiveAuthentication=no -o Subsystem="sftp internal-sftp"',
].join('\n');
