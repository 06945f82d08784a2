/**
 * A user of this machine who may do nothing special, for tests that run as root: a process of theirs sees a user database
 * of its own (in a private mount namespace) and this checkout at a path that everybody may read. The host has no such user.
 */
import type { ChildProcess, SpawnOptions } from 'node:child_process';
import { spawn } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '..', '..');
const NAME = 'sandboxer-test';
const SUBORDINATES = 65_536;
/** Other runs on this machine have users of their own. */
const FIRST = (process.pid % 2_000) * 8;
const FIRST_UID = 900_000_000 + FIRST;
const FIRST_SUBORDINATE = 1_200_000_000 + FIRST * SUBORDINATES;

const ENTER = [
  'set -e',
  'for name in passwd group subuid subgid; do mount --bind "$WORLD/etc/$name" "/etc/$name"; done',
  'mount --bind "$REPOSITORY" "$WORLD/clone"',
  'exec setpriv --reuid="$USER_ID" --regid="$USER_ID" --clear-groups --inh-caps=-all env -i HOME="$WORLD/home" TMPDIR="$WORLD/tmp" PATH="$USER_PATH" "$@"',
].join('\n');

/** Why there can be none here, or `null`. */
export function noOrdinaryUser(): string | null {
  if (process.getuid?.() !== 0) return 'only root can become another user';
  return ['unshare', 'setpriv'].every((name) => existsSync(`/usr/bin/${name}`))
    ? null
    : 'util-linux is not here';
}

function etcFile(name: string, more: string): string {
  const own = existsSync(`/etc/${name}`) ? readFileSync(`/etc/${name}`, 'utf8') : '';
  return `${own}${own === '' || own.endsWith('\n') ? '' : '\n'}${more}`;
}

let made = 0;

/** Its name and who it runs as, unless it has just ended. */
function processOf(pid: string): { readonly name: string; readonly uid: number } | null {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    const [, name = '', uid = ''] = /^Name:\t(.*)[\s\S]*?^Uid:\t(\d+)/m.exec(status) ?? [];
    return { name: `${pid} ${name}`, uid: Number(uid) };
  } catch {
    return null;
  }
}

export class OrdinaryUser {
  /** Its own: what is left of a user can be told from what another one does. */
  readonly uid: number;
  /** The first of the ids that newuidmap gives it, where it has any. */
  readonly firstSubordinate: number;
  readonly home: string;
  readonly tmp: string;
  /** Where it finds this checkout, which it may only read. */
  readonly clone: string;
  readonly #world: string;

  /** `subordinate`: with a range of ids that newuidmap gives it. */
  constructor({ subordinate }: { readonly subordinate: boolean }) {
    this.uid = FIRST_UID + made;
    this.firstSubordinate = FIRST_SUBORDINATE + made * SUBORDINATES;
    made += 1;
    this.#world = mkdtempSync(join(tmpdir(), 'sbx-user-'));
    chmodSync(this.#world, 0o755);
    this.home = join(this.#world, 'home');
    this.tmp = join(this.#world, 'tmp');
    this.clone = join(this.#world, 'clone');
    for (const path of [join(this.#world, 'etc'), this.home, this.tmp, this.clone]) mkdirSync(path);
    for (const path of [this.home, this.tmp]) chownSync(path, this.uid, this.uid);
    const range = subordinate ? `${NAME}:${this.firstSubordinate}:${SUBORDINATES}\n` : '';
    const files = {
      passwd: etcFile('passwd', `${NAME}:x:${this.uid}:${this.uid}::${this.home}:/bin/sh\n`),
      group: etcFile('group', `${NAME}:x:${this.uid}:\n`),
      subuid: range,
      subgid: range,
    };
    for (const [name, content] of Object.entries(files))
      writeFileSync(join(this.#world, 'etc', name), content);
  }

  /** Of the pinned Node that lies in the checkout, as it sees it. */
  get node(): string {
    return join(this.clone, 'node_modules', '.bin', 'node');
  }

  spawn(argv: readonly string[], options: SpawnOptions = {}): ChildProcess {
    const env = {
      PATH: process.env.PATH,
      WORLD: this.#world,
      REPOSITORY: ROOT,
      USER_ID: String(this.uid),
      USER_PATH: '/usr/local/bin:/usr/bin:/bin',
    };
    return spawn('unshare', ['--mount', 'sh', '-c', ENTER, 'sh', ...argv], { ...options, env, cwd: '/' });
  }

  async run(argv: readonly string[]): Promise<{ code: number | null; stdout: string; stderr: string }> {
    const child = this.spawn(argv, { stdio: ['ignore', 'pipe', 'pipe'] });
    const texts = { stdout: '', stderr: '' };
    for (const name of ['stdout', 'stderr'] as const)
      child[name]?.setEncoding('utf8').on('data', (text: string) => {
        texts[name] += text;
      });
    const code = await new Promise<number | null>((resolve, reject) => {
      child.once('error', reject);
      child.once('close', resolve);
    });
    return { code, ...texts };
  }

  /** What still runs as it or as one of its subordinate ids. */
  processes(): readonly string[] {
    const isOwn = (uid: number) =>
      uid === this.uid || (uid >= this.firstSubordinate && uid < this.firstSubordinate + SUBORDINATES);
    return readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .flatMap((pid) => processOf(pid) ?? [])
      .filter(({ uid }) => isOwn(uid))
      .map(({ name }) => name);
  }

  remove(): void {
    rmSync(this.#world, { recursive: true, force: true });
  }
}
