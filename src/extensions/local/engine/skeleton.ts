/**
 * The image `host`: a small generated file system around the machine's `/usr`. Of the host's `/etc` only files that `/usr` needs
 * and every user may read; no file of its `/home`, `/root` and `/var`.
 */
import { createHash } from 'node:crypto';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, normalize } from 'node:path';

const VERSION = 4;
const MOST_BYTES = 8 << 20;
export const HELPERS = '/opt/sandboxer/bin';
const HOST_SUDO = '/usr/bin/sudo';
const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
const CTYPE = 'C.UTF-8';

/** Returns the PATH. The host's sudo works where its files show as root's; elsewhere the sandbox's own replaces it. */
export function pathWith(hostSudo: boolean): string {
  return hostSudo ? `${PATH}:${HELPERS}` : `${HELPERS}:${PATH}`;
}

const sudoOfHost = process.geteuid?.() === 0 && existsSync(HOST_SUDO);
const LOGIN_PATH = pathWith(sudoOfHost);

/** Sets for logins the environment that programs have without one: ssh, su and `env -i` drop it. */
const LOGIN_ENVIRONMENT = `case "\${PATH-}" in
  '' | *:.) PATH=${LOGIN_PATH} ;;
esac
case ":$PATH:" in
  *:${HELPERS}:*) ;;
  *) PATH=${sudoOfHost ? `$PATH:${HELPERS}` : `${HELPERS}:$PATH`} ;;
esac
for sandboxer_directory in ${PATH.replaceAll(':', ' ')}; do
  case ":$PATH:" in
    *:$sandboxer_directory:*) ;;
    *) PATH=$PATH:$sandboxer_directory ;;
  esac
done
unset sandboxer_directory
export PATH
if [ -z "\${LC_ALL-}\${LC_CTYPE-}\${LANG-}" ]; then export LC_CTYPE=${CTYPE}; fi
`;

const PROFILE = `for sandboxer_file in /etc/profile.d/*.sh; do
  if [ -r "$sandboxer_file" ]; then . "$sandboxer_file"; fi
done
unset sandboxer_file
if [ -n "\${PS1-}" ] && [ -n "\${BASH-}" ] && [ "$BASH" != /bin/sh ]; then . /etc/bash.bashrc; fi
`;

/** Bash also reads this file without a login: at a terminal, and for a single command over ssh. */
const BASHRC = `. /etc/profile.d/sandboxer.sh
if [ -n "\${PS1-}" ]; then PS1='\\u@\\h:\\w\\$ '; fi
`;

const DIRECTORIES: readonly (readonly [string, number])[] = [
  ['dev', 0o755],
  ['etc', 0o755],
  ['home', 0o755],
  ['home/user', 0o755],
  ['media', 0o755],
  ['mnt', 0o755],
  ['opt', 0o755],
  ['proc', 0o755],
  ['root', 0o700],
  ['run', 0o755],
  ['run/secrets', 0o755],
  ['run/lock', 0o1777],
  ['srv', 0o755],
  ['sys', 0o755],
  ['tmp', 0o1777],
  ['usr', 0o755],
  ['var', 0o755],
  ['var/cache', 0o755],
  ['var/cache/apt/archives/partial', 0o755],
  ['var/lib', 0o755],
  ['var/lib/apt/lists/partial', 0o755],
  ['var/lib/dpkg/info', 0o755],
  ['var/lib/dpkg/triggers', 0o755],
  ['var/lib/dpkg/updates', 0o755],
  ['var/log', 0o755],
  ['var/mail', 0o755],
  ['var/spool', 0o755],
  ['var/tmp', 0o1777],
];

/** Names to copy from `/etc`: no value in any of these files is a secret. */
const FROM_ETC = [
  'alternatives',
  'ca-certificates.conf',
  'debian_version',
  'fonts',
  'java-17-openjdk',
  'ld.so.cache',
  'ld.so.conf',
  'ld.so.conf.d',
  'localtime',
  'magic',
  'mime.types',
  'os-release',
  'perl',
  'pki/ca-trust/extracted',
  'pki/tls/certs',
  'protocols',
  'rpc',
  'services',
  'ssl/certs',
  'ssl/openssl.cnf',
  'terminfo',
  'timezone',
];

const PAM_OPEN =
  'auth sufficient pam_permit.so\naccount sufficient pam_permit.so\nsession sufficient pam_permit.so\n';
const PAM_SU =
  'auth sufficient pam_rootok.so\nauth required pam_deny.so\naccount sufficient pam_permit.so\nsession sufficient pam_permit.so\n';

const FILES: Readonly<Record<string, readonly [content: string, mode: number]>> = {
  'etc/passwd': [
    [
      'root:x:0:0:root:/root:/bin/bash',
      'daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin',
      'bin:x:2:2:bin:/bin:/usr/sbin/nologin',
      'sys:x:3:3:sys:/dev:/usr/sbin/nologin',
      'mail:x:8:8:mail:/var/mail:/usr/sbin/nologin',
      'www-data:x:33:33:www-data:/var/www:/usr/sbin/nologin',
      '_apt:x:42:65534::/nonexistent:/usr/sbin/nologin',
      'user:x:1000:1000:user:/home/user:/bin/bash',
      'nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin',
      '',
    ].join('\n'),
    0o644,
  ],
  'etc/group': [
    [
      ...[
        'root:x:0:',
        'daemon:x:1:',
        'bin:x:2:',
        'sys:x:3:',
        'adm:x:4:',
        'tty:x:5:',
        'disk:x:6:',
        'mail:x:8:',
      ],
      ...['sudo:x:27:user', 'www-data:x:33:', 'shadow:x:42:', 'utmp:x:43:', 'staff:x:50:', 'users:x:100:'],
      ...['user:x:1000:', 'nogroup:x:65534:', ''],
    ].join('\n'),
    0o644,
  ],
  'etc/shadow': ['root:*:19000:0:99999:7:::\nuser:*:19000:0:99999:7:::\n', 0o640],
  'etc/gshadow': ['root:*::\nsudo:*::user\nuser:!::\n', 0o640],
  'etc/hostname': ['sandbox\n', 0o644],
  'etc/hosts': ['127.0.0.1 localhost sandbox\n::1 localhost ip6-localhost ip6-loopback\n', 0o644],
  'etc/resolv.conf': ['nameserver 127.0.0.1\noptions timeout:1 attempts:1\n', 0o644],
  'etc/nsswitch.conf': [
    'passwd: files\ngroup: files\nshadow: files\nhosts: files dns\nservices: files\n',
    0o644,
  ],
  'etc/host.conf': ['multi on\n', 0o644],
  'etc/shells': ['/bin/sh\n/bin/bash\n', 0o644],
  'etc/login.defs': [
    `UMASK 022\nUID_MIN 1000\nUID_MAX 60000\nGID_MIN 1000\nGID_MAX 60000\nENCRYPT_METHOD SHA512\nENV_PATH PATH=${LOGIN_PATH}\nENV_SUPATH PATH=${LOGIN_PATH}\n`,
    0o644,
  ],
  'etc/profile': [PROFILE, 0o644],
  'etc/profile.d/sandboxer.sh': [LOGIN_ENVIRONMENT, 0o644],
  'etc/bash.bashrc': [BASHRC, 0o644],
  'etc/fstab': ['', 0o644],
  'etc/environment': [`PATH="${LOGIN_PATH}"\nLC_CTYPE="${CTYPE}"\n`, 0o644],
  'etc/subuid': ['', 0o644],
  'etc/subgid': ['', 0o644],
  'etc/sudoers': [
    'Defaults !fqdn\nDefaults env_keep += "LANG LC_ALL TERM"\nroot ALL=(ALL:ALL) NOPASSWD: ALL\nuser ALL=(ALL:ALL) NOPASSWD: ALL\n',
    0o440,
  ],
  'etc/pam.d/other': [PAM_OPEN, 0o644],
  'etc/pam.d/sudo': [PAM_OPEN, 0o644],
  'etc/pam.d/sudo-i': [PAM_OPEN, 0o644],
  'etc/pam.d/su': [PAM_SU, 0o644],
  'etc/pam.d/su-l': [PAM_SU, 0o644],
  // Package managers find an empty list of installed packages, which they can write.
  'var/lib/dpkg/status': ['', 0o644],
  'var/lib/dpkg/available': ['', 0o644],
  'home/user/.profile': ['', 0o644],
  '.init': ['', 0o755],
};

/** Parts of `/usr` that a host with separate `/bin` and `/lib` keeps outside of it. */
const MERGED = ['bin', 'sbin', 'lib', 'lib32', 'lib64', 'libx32'];

/** Returns the host's directories to show: `/usr`, and those that are not merged into it. */
export function hostPaths(): string[] {
  const apart = MERGED.filter((name) => lstatSync(`/${name}`, { throwIfNoEntry: false })?.isDirectory());
  return ['/usr', ...apart.map((name) => `/${name}`)];
}

type HostFile = { readonly name: string } & (
  | { readonly kind: 'directory' }
  | { readonly kind: 'link'; readonly target: string }
  | { readonly kind: 'file'; readonly mode: number; readonly content: Buffer }
);

/** Yields the files to copy below one name of the host's `/etc`: links as they are, and files that every user may read. */
function* filesBelow(etc: string, name: string): Generator<HostFile> {
  const path = join(etc, name);
  const info = lstatSync(path, { throwIfNoEntry: false });
  if (info === undefined) return;
  if (info.isSymbolicLink()) return yield { name, kind: 'link', target: readlinkSync(path) };
  if ((info.mode & 0o004) === 0) return;
  if (info.isDirectory()) {
    yield { name, kind: 'directory' };
    for (const inner of readdirSync(path).toSorted()) yield* filesBelow(etc, join(name, inner));
  } else if (info.isFile() && info.size <= MOST_BYTES) {
    yield { name, kind: 'file', mode: 0o644 | (info.mode & 0o111), content: readFileSync(path) };
  }
}

/** Yields all files to copy from the host's `/etc`, without dangling links. */
function* hostFiles(etc: string): Generator<HostFile> {
  const python = readdirSync(etc).filter((name) => /^python3(?:\.\d+)?$/.test(name));
  for (const name of [...FROM_ETC, ...python.toSorted()]) {
    if (existsSync(join(etc, name))) yield* filesBelow(etc, name);
  }
}

/** Returns a digest that changes with the output of `writeSkeleton`, so that layers built on other files keep those. */
export function skeletonDigest(sudoHelper: string | null, etc = '/etc'): string {
  const hash = createHash('sha256').update(JSON.stringify([VERSION, DIRECTORIES, FILES, hostPaths()]));
  for (const file of hostFiles(etc)) {
    const { content = '', ...rest } = { content: undefined, ...file };
    hash.update(`${JSON.stringify(rest)} ${content.length}\n`).update(content);
  }
  for (const name of MERGED) {
    const info = lstatSync(`/${name}`, { throwIfNoEntry: false });
    if (info?.isSymbolicLink()) hash.update(`${name} ${readlinkSync(`/${name}`)}\n`);
  }
  if (sudoHelper !== null) hash.update('sudo ').update(readFileSync(sudoHelper));
  return hash.digest('hex').slice(0, 24);
}

const IMAGE_TOP = ['etc/hostname', 'etc/hosts', 'etc/resolv.conf', '.init'];

/** Writes the layer above an image: files that a sandbox needs and no image has. */
export function writeImageTop(root: string, sudoHelper: string | null, workdir: string | null): void {
  const directories: [string, number][] = ['dev', 'etc', 'proc', 'run', 'run/secrets', 'sys'].map((name) => [
    name,
    0o755,
  ]);
  mkdirSync(root, { recursive: true, mode: 0o755 });
  for (const [name, mode] of [...directories, ['tmp', 0o1777] as const]) {
    mkdirSync(join(root, name), { recursive: true });
    chmodSync(join(root, name), mode);
  }
  for (const name of IMAGE_TOP) {
    const [content, mode] = FILES[name] as readonly [string, number];
    writeFileSync(join(root, name), content);
    chmodSync(join(root, name), mode);
  }
  const inside = workdir === null ? '' : normalize(workdir).replace(/^(?:\/|\.\.)+/, '');
  if (inside !== '' && !inside.split('/').includes('..'))
    mkdirSync(join(root, inside), { recursive: true, mode: 0o755 });
  if (sudoHelper === null) return;
  mkdirSync(join(root, HELPERS), { recursive: true, mode: 0o755 });
  copyFileSync(sudoHelper, join(root, HELPERS, 'sudo'));
}

/** Writes the tree; the spawner sets the owners, since it may give files away. */
export function writeSkeleton(root: string, sudoHelper: string | null, etc = '/etc'): void {
  mkdirSync(root, { recursive: true, mode: 0o755 });
  for (const [name, mode] of DIRECTORIES) {
    mkdirSync(join(root, name), { recursive: true });
    chmodSync(join(root, name), mode);
  }
  for (const name of MERGED) {
    const info = lstatSync(`/${name}`, { throwIfNoEntry: false });
    if (info?.isSymbolicLink()) symlinkSync(readlinkSync(`/${name}`), join(root, name));
    else if (info?.isDirectory()) mkdirSync(join(root, name));
  }
  symlinkSync('../run/lock', join(root, 'var/lock'));
  symlinkSync('../run', join(root, 'var/run'));
  symlinkSync('/proc/self/mounts', join(root, 'etc/mtab'));
  for (const [name, [content, mode]] of Object.entries(FILES)) {
    mkdirSync(dirname(join(root, name)), { recursive: true });
    writeFileSync(join(root, name), content);
    chmodSync(join(root, name), mode);
  }
  for (const file of hostFiles(etc)) {
    const path = join(root, 'etc', file.name);
    mkdirSync(file.kind === 'directory' ? path : dirname(path), { recursive: true, mode: 0o755 });
    if (file.kind === 'link') symlinkSync(file.target, path);
    if (file.kind !== 'file') continue;
    writeFileSync(path, file.content);
    chmodSync(path, file.mode);
  }
  if (sudoHelper === null) return;
  mkdirSync(join(root, HELPERS), { recursive: true, mode: 0o755 });
  copyFileSync(sudoHelper, join(root, HELPERS, 'sudo'));
}
