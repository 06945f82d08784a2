import { IgnoreRules } from '../ignore-rules.ts';

/**
 * What programs of this machine run or trust by itself, without anybody asking for that very file: a change of it that
 * comes out of a sandbox would run outside of it. It is written only where `--allow` names it.
 */
export const HOST_EXECUTED = [
  '.git',
  '.gitmodules',
  '.gitconfig',
  '.githooks/',
  '.husky/',
  '.pre-commit-config.yaml',
  'lefthook.yml',
  'lefthook.yaml',
  'lefthook-local.yml',
  '.lefthook/',
  '.envrc',
  '.direnv/',
  '.mise.toml',
  'mise.toml',
  '.mise/',
  '.autoenv.zsh',
  '.vscode/',
  '*.code-workspace',
  '.idea/',
  '.fleet/',
  '.zed/',
  '.devcontainer/',
  '.devcontainer.json',
  '.vim/',
  '.vimrc',
  '.nvimrc',
  '.nvim.lua',
  '.exrc',
  '.dir-locals.el',
  '.claude/',
  '.cursor/',
  '.codex/',
  '.mcp.json',
  '.bashrc',
  '.bash_profile',
  '.bash_login',
  '.bash_logout',
  '.bash_aliases',
  '.profile',
  '.zshrc',
  '.zshenv',
  '.zprofile',
  '.zlogin',
  '.zlogout',
  '.kshrc',
  '.cshrc',
  '.tcshrc',
  '.login',
  '.inputrc',
  '.config/fish/',
  '.tmux.conf',
  '.screenrc',
  '.gdbinit',
  '.lldbinit',
  '.pdbrc',
  '.pythonrc',
  '.irbrc',
  '.npmrc',
  '.yarnrc',
  '.yarnrc.yml',
  '.yarn/releases/',
  '.yarn/plugins/',
  '.pnpmfile.cjs',
  '.pypirc',
  '.netrc',
  '.cargo/config',
  '.cargo/config.toml',
  '.ssh/',
  '.gnupg/',
  '.aws/',
  '.kube/',
  '.docker/',
  '.local/bin/',
  '.config/autostart/',
  '.config/systemd/',
  '*.desktop',
  'sitecustomize.py',
  'usercustomize.py',
  'conftest.pth',
  'desktop.ini',
  'autorun.inf',
] as const;

/** At any depth, also those of several parts. */
const RULES = IgnoreRules.none.with(
  '',
  HOST_EXECUTED.map((pattern) => `**/${pattern.toLowerCase()}`).join('\n'),
);

/** As a file system would take it that minds neither case nor characters without a shape. */
function folded(path: string): string {
  return path
    .normalize('NFKC')
    .replace(/\p{Default_Ignorable_Code_Point}/gu, '')
    .toLowerCase()
    .split('/')
    .map((part) => part.replace(/[. ]+$/, '') || part)
    .join('/');
}

/** Whether a path, or a directory that it is in, is one of those. */
export function isHostExecuted(path: string): boolean {
  const parts = folded(path).split('/');
  return parts.some((_, index) => RULES.ignores(parts.slice(0, index + 1).join('/'), true));
}

/** What `--allow` lets through: patterns as in `.gitignore`. */
export function allowedBy(patterns: readonly string[]): (path: string) => boolean {
  const rules = IgnoreRules.none.with('', patterns.join('\n'));
  return (path) => {
    const parts = path.split('/');
    return parts.some((_, index) =>
      rules.ignores(parts.slice(0, index + 1).join('/'), index + 1 < parts.length),
    );
  };
}
