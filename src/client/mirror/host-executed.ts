import { IgnoreRules } from '../../archive/ignore/ignore-rules.ts';

/**
 * Files that programs run or trust by themselves, on this machine or where its files are sent, without a request for that very
 * file: a change of one that comes out of a sandbox would run outside of it. Such a file is written only where `--allow` names
 * it.
 */
export const HOST_EXECUTED = [
  '.git',
  'git~*',
  '.gitmodules',
  '.gitconfig',
  '.lfsconfig',
  '.githooks/',
  '.husky/',
  '.simple-git-hooks.*',
  'simple-git-hooks.*',
  '.overcommit.yml',
  '.pre-commit-config.yaml',
  'lefthook.yml',
  'lefthook.yaml',
  'lefthook.toml',
  'lefthook.json',
  'lefthook-local.*',
  '.lefthook.*',
  '.lefthook-local.*',
  '.lefthook/',
  '.envrc',
  '.direnv/',
  '.devenv/',
  '.mise.*',
  'mise.toml',
  'mise.*.toml',
  '.mise/',
  'mise/config.toml',
  '.rtx.toml',
  '.tool-versions',
  '.python-version',
  '.ruby-version',
  '.node-version',
  '.nvmrc',
  '.sdkmanrc',
  '.autoenv',
  '.autoenv.zsh',
  '.autoenv_leave.zsh',
  '.vscode/',
  '*.code-workspace',
  '.idea/',
  '.fleet/',
  '.zed/',
  '.nova/',
  '.devcontainer/',
  '.devcontainer.json',
  '.vim/',
  '.nvim/',
  '.vimrc',
  '_vimrc',
  '.gvimrc',
  '.lvimrc',
  '.local.vimrc',
  '.nvimrc',
  '.nvim.lua',
  '.exrc',
  '_exrc',
  '.dir-locals.el',
  '.dir-locals-2.el',
  '.claude/',
  '.cursor/',
  '.codex/',
  '.gemini/',
  '.windsurf/',
  '.kiro/',
  '.roo/',
  '.continue/',
  '.opencode/',
  'opencode.json',
  'opencode.jsonc',
  '.amazonq/',
  '.aider.conf.yml',
  '.mcp.json',
  'mcp.json',
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
  '.gdbearlyinit',
  '.lldbinit*',
  '.radare2rc',
  '.pdbrc',
  '.pdbrc.py',
  '.pythonrc',
  '.pythonrc.py',
  '.irbrc',
  '.pryrc',
  '.Rprofile',
  '.Renviron',
  '.octaverc',
  '.ghci',
  '.ocamlinit',
  '.ackrc',
  '.perldb',
  '.npmrc',
  '.yarnrc*',
  '.yarn/releases/',
  '.yarn/plugins/',
  '.pnp.*',
  '.pnpmfile.*',
  'pnpmfile.*',
  'bunfig.toml',
  '.pypirc',
  '.netrc',
  'pyvenv.cfg',
  '*.pth',
  'sitecustomize.py',
  'usercustomize.py',
  '.cargo/',
  'rust-toolchain',
  'rust-toolchain.toml',
  '.bazelrc',
  '.bazeliskrc',
  '.bazelversion',
  'tools/bazel',
  'gradlew',
  'gradlew.bat',
  'gradle/wrapper/',
  'gradle.properties',
  'mvnw',
  'mvnw.cmd',
  '.mvn/',
  '.bundle/',
  'nuget.config',
  'Directory.Build.props',
  'Directory.Build.targets',
  '.github/workflows/',
  '.github/actions/',
  '.gitea/',
  '.forgejo/',
  '.gitlab-ci.yml',
  '.gitlab/',
  '.circleci/',
  '.travis.yml',
  '.drone.yml',
  '.woodpecker.yml',
  '.woodpecker/',
  '.buildkite/',
  '.semaphore/',
  'azure-pipelines.yml',
  'bitbucket-pipelines.yml',
  'appveyor.yml',
  '.appveyor.yml',
  'Jenkinsfile',
  '.ssh/',
  '.gnupg/',
  '.aws/',
  '.kube/',
  '.docker/',
  '.local/bin/',
  '.config/autostart/',
  '.config/systemd/',
  '*.desktop',
  '*.lnk',
  '*.scf',
  '*.library-ms',
  '*.url',
  'desktop.ini',
  'autorun.inf',
] as const;

/** Patterns hold at any depth, also those of several parts. */
const RULES = IgnoreRules.none.with(
  '',
  HOST_EXECUTED.map((pattern) => `**/${pattern.toLowerCase()}`).join('\n'),
);

/**
 * Returns a path as a file system would read it that ignores case, characters without a shape and bytes that are no text, and has
 * other separators, and streams behind a colon.
 */
function foldedPath(path: string): string {
  return path
    .normalize('NFKC')
    .replace(/\p{Default_Ignorable_Code_Point}|\p{Surrogate}/gu, '')
    .toLowerCase()
    .split(/[/\\]/)
    .map((part) => part.replace(/:.*$/s, '').replace(/[. ]+$/, '') || part)
    .join('/');
}

/** Files that decide which paths of this directory are uploaded the next time, in `PackRules`. */
const IGNORE_FILES: readonly string[] = ['.gitignore', '.dockerignore', '.sandboxerignore'];

export function decidesUploads(path: string): boolean {
  return IGNORE_FILES.includes(foldedPath(path).split('/').at(-1) ?? '');
}

/** Returns whether a file of this name and content makes its directory a repository, whose settings git runs. */
export function makesRepository(path: string, start: string): boolean {
  return (
    foldedPath(path).split('/').at(-1) === 'head' && /^(?:ref:|refs\/|[0-9a-f]{40})/.test(start.trimStart())
  );
}

/** Returns whether a path, or a directory that it is in, is host-executed. */
export function isHostExecuted(path: string): boolean {
  const parts = foldedPath(path).split('/');
  return parts.some((_, index) => RULES.ignores(parts.slice(0, index + 1).join('/'), true));
}

/** Returns the filter of `--allow`: patterns as in `.gitignore`. */
export function allowedBy(patterns: readonly string[]): (path: string) => boolean {
  const rules = IgnoreRules.none.with('', patterns.join('\n'));
  return (path) => {
    const parts = path.split('/');
    return parts.some((_, index) =>
      rules.ignores(parts.slice(0, index + 1).join('/'), index + 1 < parts.length),
    );
  };
}
