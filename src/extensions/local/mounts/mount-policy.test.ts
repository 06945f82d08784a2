import { execFileSync } from 'node:child_process';
import {
  mkdirSync,
  mkdtempSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SandboxerError } from '../../../contract/errors/errors.ts';
import { BLOCKED_SOURCES } from './blocked-sources.ts';
import { BLOCKED_IN_HOME } from './in-home.ts';
import { checkedMounts, holdSource } from './mount-policy.ts';

const FIELD = 'inputs.mounts[0].source';

let dir: string;
let own: string;
beforeAll(() => {
  dir = realpathSync(mkdtempSync(join(tmpdir(), 'sandboxer-mounts-')));
  own = join(dir, 'state');
  for (const name of ['state/local', 'data/inner', 'home']) mkdirSync(join(dir, name), { recursive: true });
  writeFileSync(join(dir, 'file'), 'x');
});
afterAll(() => rmSync(dir, { recursive: true, force: true }));

function mount(source: string, target = '/mnt/x') {
  return checkedMounts([{ source, target, access: 'ro' }], { own: [own] });
}

function refusal(work: () => unknown): string {
  try {
    work();
  } catch (error) {
    expect(error).toBeInstanceOf(SandboxerError);
    expect((error as SandboxerError).code).toBe('SBX_PATH_REFUSED');
    return (error as SandboxerError).extras.field ?? '';
  }
  return 'not refused';
}

describe('sources', () => {
  it('mount sources are directories and files that hold nothing of the machine', () => {
    expect(mount(join(dir, 'data'))).toEqual([{ source: join(dir, 'data'), target: '/mnt/x', access: 'ro' }]);
    expect(mount(`${dir}/data/../file/`)[0]?.source).toBe(join(dir, 'file'));
  });

  it.each([...BLOCKED_SOURCES])(
    'a mount of %s, of what is in it, or of what it is in, is refused',
    (path) => {
      for (const source of [path, `${path}/`, `${path}/deep/er`, dirname(path), `/tmp/../${path}`]) {
        expect([source, refusal(() => mount(source))]).toEqual([source, FIELD]);
      }
    },
  );

  /** Mounts a home without any blocked place near, with a file of this name. */
  function mountOfHome(name: string): void {
    const home = join(dir, 'home');
    const before = process.env.HOME;
    const path = join(home, name);
    mkdirSync(dirname(path), { recursive: true });
    mkdirSync(path);
    process.env.HOME = home;
    try {
      mount(path);
    } finally {
      process.env.HOME = before;
      rmSync(join(home, name.split('/')[0] ?? name), { recursive: true });
    }
  }

  it.each([...BLOCKED_IN_HOME])('a mount of ~/%s is refused', (name) => {
    expect(refusal(() => mountOfHome(name))).toBe(FIELD);
  });

  /** Listed here and not taken from the block list: a removal from that list must fail the test. */
  const SECRETS = `.Xauthority .tsh .databrickscfg .cache/huggingface .python_history .psql_history .terraformrc .var snap
    .minikube .fly .claude.json .local/share/containers .ollama .mylogin.cnf .k5login .authinfo .local/share/fish .rclone.conf
    .modal.toml .pip .sbt .android .gitcookies .viminfo .node_repl_history .lesshst .local/share/kwalletd .cache/mozilla
    .1password .mysqlsh .near-credentials .argocd .sentryclirc .wandb .local/share/gnupg .lnd .monero .sfdx .gsutil Maildir`;
  const RUN_BY_THE_HOST =
    'bin go/bin .nvm .pyenv .rustup .fzf.bash .local/share/pnpm .local/share/bash-completion .nix-profile';
  const HISTORIES = '.some_history .tool-history .octave_hist .calchst .shell.history';
  const COPIES = `.psql_history-mydb .bash_history-00123.tmp .zsh_history.LOCK .bash_history~ .netrc~ .pgpass.bak .ssh.old .ssh-old
    .aws_backup .git-credentials.1 .config.bak.2 .my.cnf.save`;
  it.each([SECRETS, RUN_BY_THE_HOST, HISTORIES, COPIES].join(' ').split(/\s+/))(
    'credentials, histories, what shells of the host run, copies of them: a mount of ~/%s is refused',
    (name) => {
      expect(refusal(() => mountOfHome(name))).toBe(FIELD);
    },
  );

  it.each(['history', 'projects', 'go/src', '.cache/pip', 'backup', '.histogram', 'notes.bak', '.tool.bak'])(
    'a mount of ~/%s is allowed',
    (name) => {
      expect(refusal(() => mountOfHome(name))).toBe('not refused');
    },
  );

  it('mount sources that are the server’s own, the whole machine, relative or missing are refused', () => {
    for (const source of [
      own,
      join(own, 'local'),
      dir,
      '/',
      '//',
      '/.',
      'data',
      './data',
      '~',
      join(dir, 'none'),
    ]) {
      expect([source, refusal(() => mount(source))]).toEqual([source, 'inputs.mounts[0].source']);
    }
    expect(refusal(() => mount('/tmp\0/x'))).toBe('inputs.mounts[0].source');
  });

  it('mount sources are judged by what they lead to', () => {
    const link = (name: string, target: string) => {
      const path = join(dir, 'links', name);
      mkdirSync(dirname(path), { recursive: true });
      symlinkSync(target, path);
      return path;
    };
    const etc = link('etc', '/etc');
    const twice = link('twice', 'etc');
    const up = link('up', '../../../../../../..');
    const nowhere = link('nowhere', join(dir, 'links/later'));
    const state = link('state', own);
    const sources = [etc, join(etc, 'ssh'), twice, up, join(up, 'etc'), nowhere, state];
    // A missing path below a link that leads to a blocked place is in that place.
    const missing = [join(etc, 'no/such/thing'), join(twice, 'nothing'), join(nowhere, 'x')];
    for (const source of [...sources, ...missing]) {
      expect([source, refusal(() => mount(source))]).toEqual([source, 'inputs.mounts[0].source']);
    }
    const good = link('good', '../data');
    expect(mount(join(good, 'inner'))[0]?.source).toBe(join(dir, 'data/inner'));
  });
});

describe('a source that was allowed once', () => {
  const held = (source: string) => {
    const one = holdSource(source, 2, { own: [own] });
    one.close();
    return one;
  };
  const place = () => {
    const path = join(dir, `swapped-${Math.random().toString(36).slice(2)}`);
    mkdirSync(join(path, 'data'), { recursive: true });
    return path;
  };

  it('an allowed source is the same device and inode as before', () => {
    const path = join(place(), 'data');
    const { dev, ino } = statSync(path, { bigint: true });
    expect(held(path)).toMatchObject({ path, device: dev, inode: ino });
  });

  it.each(['/etc', '/tmp', '..'])(
    'an allowed source is refused when a link to %s has taken its place, or that of a parent',
    (target) => {
      const path = place();
      renameSync(join(path, 'data'), join(path, 'was'));
      symlinkSync(target, join(path, 'data'));
      expect(refusal(() => held(join(path, 'data')))).toBe('inputs.mounts[2].source');

      const above = place();
      renameSync(above, `${above}-was`);
      symlinkSync(`${above}-was`, above);
      expect(refusal(() => held(join(above, 'data')))).toBe('inputs.mounts[2].source');
    },
  );

  it('an allowed source is refused when it is gone, or is neither a directory nor a file now', () => {
    const path = place();
    expect(refusal(() => held(join(path, 'none')))).toBe('inputs.mounts[2].source');
    execFileSync('mkfifo', [join(path, 'pipe')]);
    expect(refusal(() => held(join(path, 'pipe')))).toBe('inputs.mounts[2].source');
  });
});
