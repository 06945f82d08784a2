/**
 * Places of a home that no sandbox is shown: credentials, histories of commands, and files that a shell or a tool of the host
 * runs. Histories, and copies of all of them, are found by their names (`isBlockedByName`).
 */
const words = (text: string) => text.trim().split(/\s+/);

const SHELLS = words(`
  .bash_aliases .bash_completion .bash_login .bash_logout .bash_profile .bash_sessions .bashrc .bashrc.d .config .cshrc
  .direnvrc .env .envrc .fzf .fzf.bash .fzf.zsh .inputrc .kshrc .local/share/bash-completion .local/share/zinit
  .local/share/zsh .login .mkshrc .oh-my-bash .oh-my-fish .oh-my-zsh .p10k.zsh .pam_environment .profile .screenrc .shinit
  .shrc .tcshrc .tmux .tmux.conf .xbindkeysrc .xinitrc .xprofile .xsession .xsessionrc .zgen .zim .zinit .zlogin .zlogout
  .zplug .zprezto .zprofile .zsh_sessions .zshenv .zshrc`);

const HISTORIES = words(`
  .bash_history .dbshell .ghc .histfile .history .ipython .lesshst .local/share/atuin .local/share/fish .local/share/nano
  .local/share/powershell .local/share/zoxide .mongodb .mysql_history .node_repl_history .psql_history .python_history
  .rediscli_history .Rhistory .sqlite_history .viminfo .wget-hsts .zhistory .zsh_history`);

const STARTED_BY_TOOLS = words(`
  .asdf .bazelrc .bun .cursor-server .deno .direnv .emacs .emacs.d .exrc .fnm .forward .foundry .gdbinit .ghci .ghcup
  .git-templates .ideavimrc .irbrc .juliaup .krew .linuxbrew .lldbinit .local/bin .local/lib .local/share/applications
  .local/share/dbus-1 .local/share/flatpak .local/share/fnm .local/share/mise .local/share/nvim .local/share/pipx
  .local/share/pnpm .local/share/systemd .local/share/uv .local/share/vim .local/state .mailcap .n .nanorc .nix-defexpr
  .nix-profile .nodenv .nvm .octaverc .opam .procmailrc .pryrc .pyenv .pythonrc .pythonrc.py .rbenv .Renviron .Rprofile
  .rustup .rvm .sdkman .spacemacs .vim .vimrc .volta .vscode .vscode-insiders .vscode-oss .vscode-remote .vscode-server
  .windsurf-server bin go/bin`);

const CLOUDS = words(`
  .acme.sh .akamai-cli .alicloud .aliyun .amplify .ansible .argocd .astro .aws .aws-sso .awsvault .azcopy .azure .azure-devops
  .bigquery.v2.token .bigqueryrc .bluemix .boto .cf .chef .circleci .civo.json .cloudflared .confluent .databricks
  .databrickscfg .dbt .doppler .edgerc .elasticbeanstalk .fly .flyctl .gcloud .granted .gsutil .helm .heroku .ibmcloud
  .infisical .istioctl .k8slens .kube .kubeconfig .lego .linkerd2 .local/share/heroku .mc .minikube .minishift .modal.toml
  .near-credentials .netlify .ngrok .ngrok2 .now .oci .okta .okta_aws_login_config .okteto .openstack .ovh.conf .packer.d
  .pulumi .puppetlabs .railway .rancher .rclone.conf .runpod .s3cfg .s3ql .saml2aws .sentryclirc .serverless .serverlessrc .sf
  .sfdx .snowflake .snowsql .supabase .talos .tccli .terraform.d .terraformrc .travis .tsh .twilio-cli .vagrant.d .vault
  .vault-token .vercel .wrangler`);

const ENGINES = words(`
  .colima .crc .docker .lima .local/share/containers .local/share/docker .local/share/lxc .local/share/multipass
  .local/share/rancher-desktop .multipass .orbstack .rd .var snap`);

const PACKAGES = words(`
  .android .aspnet .bundle .bunfig.toml .cabal .cargo .composer .condarc .continuum .dotnet .expo .fastlane .gem .gradle .hex
  .ivy2 .jfrog .lein .luarocks .m2 .microsoft .npm .npmrc .nuget .pause .pip .pnpmrc .pub-cache .pydistutils.cfg .pypirc .sbt
  .swiftpm .yarnrc .yarnrc.yml`);

const VERSIONS = words(`
  .arcrc .bazaar .cvspass .git-credential-cache .git-credentials .gitconfig .gitcookies .gitlab-runner .hgrc .jira.d .p4enviro
  .p4tickets .p4trust .reviewboardrc .subversion`);

const MODELS = words(`
  .aider.conf.yml .anthropic .aws-sam .cache/huggingface .claude .claude.json .codeium .codex .continue .copilot .cursor
  .gemini .huggingface .jupyter .kaggle .local/share/claude .local/share/goose .local/share/jupyter .local/share/opencode
  .ollama .openai .openclaw .opencode .qwen .streamlit .wandb .windsurf`);

const DATABASES = words(`
  .cassandra .clickhouse-client .cqlshrc .DataGrip .dbeaver4 .influxdbv2 .local/share/DBeaverData .local/share/pgadmin
  .mongorc.js .mongoshrc.js .my.cnf .mylogin.cnf .mysqlsh .odbc.ini .pg_service.conf .pgadmin .pgpass .psqlrc .redisclirc
  .sqldeveloper .sqliterc .trino_config`);

const KEYS = words(`
  .1password .authinfo .authinfo.gpg .bitcoin .bitmonero .brownie .cardano .credentials .davfs2 .dbus .dogecoin .ecryptfs
  .electrum .ethereum .gnome2 .gnome2_private .gnupg .google_authenticator .ICEauthority .java .k5login .kde .kde4 .keychain
  .litecoin .lnd .local/share/gnupg .local/share/keyrings .local/share/kwalletd .local/share/lpass .local/share/pki
  .local/share/remmina .local/share/seahorse .lpass .minisign .monero .netrc .op .passage .password-store .pki .Private .putty
  .rhosts .secrets .shosts .smbcredentials .ssh .ssh2 .step .tpm2_pkcs11 .vnc .Xauthority .yubico .zcash`);

const MAIL_AND_WEB = words(`
  .cache/BraveSoftware .cache/chromium .cache/google-chrome .cache/librewolf .cache/microsoft-edge .cache/mozilla .cache/opera
  .cache/thunderbird .cache/vivaldi .curlrc .esmtprc .fetchmailrc .filezilla .floorp .getmail .irssi .lftp .librewolf
  .local/share/evolution .local/share/mail .local/share/Steam .local/share/TelegramDesktop .local/share/torbrowser .mail
  .maildir .mailrc .mbsyncrc .mozilla .msmtprc .mutt .muttrc .ncftp .newsrc .offlineimaprc .opera .purple .steam .thunderbird
  .waterfox .weechat .wgetrc .zen Library Mail Maildir mbox`);

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

/** Suffixes of copies: `.netrc~`, `.aws.bak`, `.ssh-old`, `.pgpass.2`. */
const OF_A_COPY = /(?:~|\.\d+|[-._](?:backup|bak|copy|lock|new|old|orig|save|swp|tmp))+$/i;

/** Names of histories of commands: `.psql_history`, `.octave_hist`, `.psql_history-mydb`. */
const HISTORY = /^\..*(?:hist|history|hst)(?:[-.~].*)?$/i;

/** Returns whether a file in a home is a history, or a copy of a blocked place, by its name. */
export function isBlockedByName(name: string): boolean {
  return HISTORY.test(name) || LISTED.has(name.replace(OF_A_COPY, ''));
}
