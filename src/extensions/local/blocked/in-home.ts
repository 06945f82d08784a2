/**
 * Places of a home that no sandbox is shown: credentials, histories of commands, and what a shell or a tool of the host runs.
 * Histories, and copies of all of them, are found by their names (`isBlockedByName`).
 */
const words = (text: string) => text.trim().split(/\s+/);

const SHELLS = words(`
  .bash_aliases .bash_completion .bash_login .bash_logout .bash_profile .bashrc .bash_sessions .config .cshrc .direnvrc .env
  .envrc .inputrc .kshrc .login .mkshrc .oh-my-bash .oh-my-zsh .pam_environment .profile .screenrc .shinit .shrc .tcshrc .tmux
  .tmux.conf .xbindkeysrc .xinitrc .xprofile .xsession .xsessionrc .zlogin .zlogout .zprofile .zsh_sessions .zshenv .zshrc`);

const HISTORIES = words(`
  .bash_history .dbshell .ghc .history .histfile .ipython .lesshst .local/share/atuin .local/share/fish
  .local/share/powershell .local/share/zoxide .mongodb .mysql_history .node_repl_history .psql_history .python_history
  .rediscli_history .Rhistory .sqlite_history .viminfo .wget-hsts .zhistory .zsh_history`);

const STARTED_BY_TOOLS = words(`
  .bazelrc .emacs .emacs.d .exrc .forward .gdbinit .ghci .git-templates .ideavimrc .irbrc .lldbinit .local/bin .local/lib
  .local/share/applications .local/share/dbus-1 .local/share/flatpak .local/share/nvim .local/share/systemd .local/state
  .mailcap .nanorc .octaverc .procmailrc .pryrc .pythonrc .pythonrc.py .Renviron .Rprofile .spacemacs .vim .vimrc .vscode
  .vscode-insiders .vscode-oss .vscode-remote .vscode-server .cursor-server .windsurf-server`);

const CLOUDS = words(`
  .acme.sh .akamai-cli .aliyun .ansible .aws .aws-sso .awsvault .azure .bluemix .boto .cf .civo.json .cloudflared .databricks
  .databrickscfg .dbt .edgerc .flyctl .fly .granted .helm .ibmcloud .kube .kubeconfig .lego .mc .minikube .minishift
  .modal.toml .netlify .ngrok .ngrok2 .now .oci .okta .okta_aws_login_config .okteto .openstack .ovh.conf .packer.d .pulumi
  .rancher .rclone.conf .runpod .s3cfg .s3ql .saml2aws .serverless .serverlessrc .snowflake .snowsql .supabase .talos
  .terraform.d .terraformrc .tsh .vagrant.d .vault .vault-token .vercel .wrangler`);

const ENGINES = words(
  `.docker .local/share/containers .local/share/docker .lima .colima .orbstack snap .var`,
);

const PACKAGES = words(`
  .android .aspnet .bundle .bunfig.toml .cabal .cargo .composer .condarc .continuum .dotnet .expo .fastlane .gem .gradle .hex
  .ivy2 .jfrog .lein .luarocks .m2 .microsoft .npm .npmrc .nuget .pause .pip .pnpmrc .pub-cache .pydistutils.cfg .pypirc .sbt
  .swiftpm .yarnrc .yarnrc.yml`);

const VERSIONS = words(`
  .arcrc .bazaar .cvspass .git-credential-cache .git-credentials .gitconfig .gitcookies .gitlab-runner .hgrc .jira.d .p4enviro
  .p4tickets .p4trust .reviewboardrc .subversion`);

const MODELS = words(`
  .aider.conf.yml .anthropic .cache/huggingface .claude .claude.json .codeium .codex .continue .copilot .cursor .gemini
  .huggingface .jupyter .kaggle .local/share/jupyter .local/share/opencode .ollama .openai .openclaw .opencode .qwen
  .streamlit .windsurf`);

const DATABASES = words(`
  .cassandra .clickhouse-client .cqlshrc .influxdbv2 .local/share/DBeaverData .mongorc.js .mongoshrc.js .my.cnf .mylogin.cnf
  .odbc.ini .pg_service.conf .pgpass .psqlrc .sqldeveloper .sqliterc`);

const KEYS = words(`
  .authinfo .authinfo.gpg .bitcoin .credentials .davfs2 .dbus .ecryptfs .electrum .ethereum .gnupg .google_authenticator
  .ICEauthority .java .k5login .keychain .local/share/keyrings .local/share/kwalletd .local/share/lpass
  .local/share/remmina .lpass .netrc .op .password-store .pki .Private .putty .rhosts .secrets .shosts .smbcredentials .ssh
  .step .vnc .Xauthority .yubico`);

const MAIL_AND_WEB = words(`
  .cache/chromium .cache/google-chrome .cache/mozilla .cache/thunderbird .curlrc .esmtprc .fetchmailrc .filezilla .getmail
  .irssi .lftp .librewolf .local/share/TelegramDesktop .local/share/evolution .mailrc .mbsyncrc .mozilla .msmtprc .mutt .muttrc
  .ncftp .offlineimaprc .opera .purple .thunderbird .weechat .wgetrc Library`);

export const BLOCKED_IN_HOME: readonly string[] = [
  ...SHELLS,
  ...HISTORIES,
  ...STARTED_BY_TOOLS,
  ...CLOUDS,
  ...ENGINES,
  ...PACKAGES,
  ...VERSIONS,
  ...MODELS,
  ...DATABASES,
  ...KEYS,
  ...MAIL_AND_WEB,
].toSorted();

const LISTED: ReadonlySet<string> = new Set(BLOCKED_IN_HOME);

/** What programs and people append to the name of a copy: `.netrc~`, `.aws.bak`, `.ssh-old`, `.pgpass.2`. */
const OF_A_COPY = /(?:~|\.\d+|[-._](?:backup|bak|copy|lock|new|old|orig|save|swp|tmp))+$/i;

/** As programs name the list of what was typed into them: `.psql_history`, `.octave_hist`, `.psql_history-mydb`. */
const HISTORY = /^\..*(?:hist|history|hst)(?:[-.~].*)?$/i;

/** Whether a file in a home is a history, or a copy of a place that is blocked, by its name. */
export function isBlockedByName(name: string): boolean {
  return HISTORY.test(name) || LISTED.has(name.replace(OF_A_COPY, ''));
}
