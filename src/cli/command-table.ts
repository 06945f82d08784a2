import type { CommandEntry, CommandTable } from './invocation/command-entry.ts';

/** Table of every command, with its text in `--help`. `group: null` is left out of the help. */
// biome-ignore format: one line for each
export const COMMANDS: readonly CommandEntry[] = [
  { name: 'run', group: 'Sandboxes', runsProgram: true, summary: 'Run one program in a new sandbox, then destroy it', load: () => import('./commands/sandboxes/run.ts') },
  { name: 'create', group: 'Sandboxes', summary: 'Create a sandbox (without arguments: the canary)', load: () => import('./commands/sandboxes/create.ts') },
  { name: 'list', aliases: ['ls'], group: 'Sandboxes', summary: 'List sandboxes', load: () => import('./commands/sandboxes/list.ts') },
  { name: 'get', group: 'Sandboxes', summary: 'Show one sandbox', load: () => import('./commands/sandboxes/get.ts') },
  { name: 'extend', group: 'Sandboxes', summary: 'Move the deadline to now + a duration', load: () => import('./commands/sandboxes/extend.ts') },
  { name: 'pause', group: 'Sandboxes', summary: 'Pause a sandbox', load: () => import('./commands/sandboxes/pause.ts') },
  { name: 'resume', group: 'Sandboxes', summary: 'Resume a paused sandbox', load: () => import('./commands/sandboxes/resume.ts') },
  { name: 'recreate', group: 'Sandboxes', summary: 'Destroy it and build it anew under the same id', load: () => import('./commands/sandboxes/recreate.ts') },
  { name: 'fork', group: 'Sandboxes', summary: 'Make a second sandbox with the same content', load: () => import('./commands/sandboxes/fork.ts') },
  { name: 'destroy', aliases: ['rm'], group: 'Sandboxes', summary: 'Destroy sandboxes', load: () => import('./commands/sandboxes/destroy.ts') },
  { name: 'events', group: 'Sandboxes', summary: 'Show what happened, or follow it', load: () => import('./commands/sandboxes/events.ts') },
  { name: 'usage', group: 'Sandboxes', summary: 'Show what a sandbox used and cost', load: () => import('./commands/sandboxes/usage.ts') },

  { name: 'exec', group: 'Inside a sandbox', runsProgram: true, summary: 'Run a program in a sandbox', load: () => import('./commands/inside/exec.ts') },
  { name: 'shell', group: 'Inside a sandbox', runsProgram: true, summary: 'Open a shell in a sandbox', load: () => import('./commands/inside/shell.ts') },
  { name: 'cp', group: 'Inside a sandbox', summary: 'Copy files and directories in or out', load: () => import('./commands/inside/cp.ts') },
  { name: 'sync', group: 'Inside a sandbox', summary: 'Bring changes of a mirrored directory back', load: () => import('./commands/inside/sync.ts') },
  { name: 'uploads', group: 'Inside a sandbox', summary: 'Upload files for sandboxes to start with', subcommands: ['list', 'create', 'entries', 'delete'], load: () => import('./commands/inside/uploads.ts') },
  { name: 'ps', group: 'Inside a sandbox', summary: 'List the processes of a sandbox', load: () => import('./commands/inside/ps.ts') },
  { name: 'logs', group: 'Inside a sandbox', summary: 'Show what a background process, a service or setup wrote', load: () => import('./commands/inside/logs.ts') },
  { name: 'kill', group: 'Inside a sandbox', summary: 'End a process of a sandbox, or signal it', load: () => import('./commands/inside/kill.ts') },
  { name: 'port-forward', group: 'Inside a sandbox', summary: 'Reach a port of a sandbox from this machine', load: () => import('./commands/inside/port-forward.ts') },
  { name: 'url', group: 'Inside a sandbox', summary: 'Get an address for an HTTP service in a sandbox', load: () => import('./commands/inside/url.ts') },
  { name: 'ssh', group: 'Inside a sandbox', runsProgram: true, summary: 'Connect with ssh, for editors and rsync', load: () => import('./commands/inside/ssh.ts') },

  { name: 'snapshot', group: 'Snapshots', summary: 'Take a snapshot of a sandbox', load: () => import('./commands/snapshots/snapshot.ts') },
  { name: 'restore', group: 'Snapshots', summary: 'Make a sandbox from a snapshot', load: () => import('./commands/snapshots/restore.ts') },
  { name: 'snapshots', group: 'Snapshots', summary: 'List, show, rename, delete, export and import snapshots', subcommands: ['list', 'show', 'rename', 'delete', 'export', 'import'], load: () => import('./commands/snapshots/snapshots.ts') },

  { name: 'profiles', group: 'Catalogue and routing', summary: 'List, show, push and validate profiles', subcommands: ['list', 'show', 'push', 'validate'], load: () => import('./commands/catalogue/profiles.ts') },
  { name: 'extensions', group: 'Catalogue and routing', summary: 'Show the backends and how they are', subcommands: ['list', 'show'], load: () => import('./commands/catalogue/extensions.ts') },
  { name: 'route', group: 'Catalogue and routing', summary: 'Explain where a sandbox went, or would go', subcommands: ['explain', 'resolve'], load: () => import('./commands/catalogue/route.ts') },
  { name: 'compose', group: 'Catalogue and routing', summary: 'Show what would become of a compose stack', subcommands: ['plan'], load: () => import('./commands/catalogue/compose.ts') },
  { name: 'estimate', group: 'Catalogue and routing', summary: 'Show the cost of a create, and lock its price', load: () => import('./commands/catalogue/estimate.ts') },
  { name: 'registry', group: 'Catalogue and routing', summary: 'Export, check and publish what is offered here', subcommands: ['export', 'validate', 'publish'], load: () => import('./commands/catalogue/registry.ts') },
  { name: 'images', group: 'Images and volumes', summary: 'List, show, import, build and remove images', subcommands: ['list', 'show', 'import', 'build', 'rm'], load: () => import('./commands/images-and-volumes/images.ts') },
  { name: 'volumes', group: 'Images and volumes', summary: 'Create, list, show and remove volumes', subcommands: ['list', 'create', 'show', 'rm'], load: () => import('./commands/images-and-volumes/volumes.ts') },
  { name: 'hosts', aliases: ['host'], group: 'Catalogue and routing', summary: 'Register, list, probe, drain and remove hosts', subcommands: ['list', 'add', 'show', 'probe', 'cost', 'drain', 'undrain', 'remove'], load: () => import('./commands/catalogue/hosts.ts') },
  { name: 'reap-stale', group: 'Catalogue and routing', summary: 'Remove leftovers (a dry run without --yes)', load: () => import('./commands/catalogue/reap-stale.ts') },
  { name: 'canary', group: 'Catalogue and routing', summary: 'Health checks of each host; run one now', load: () => import('./commands/catalogue/canary.ts') },
  { name: 'smoke', group: 'Catalogue and routing', summary: 'Try every healthy backend: create, run, destroy', load: () => import('./commands/catalogue/smoke.ts') },
  { name: 'inspect', group: 'Catalogue and routing', summary: 'Inspect hosts, leftovers, and the isolation of a sandbox', subcommands: ['host', 'stale', 'isolation'], load: () => import('./commands/catalogue/inspect.ts') },

  { name: 'credits', group: 'Account', summary: 'Show, grant, report and check credits', subcommands: ['balance', 'grant', 'history', 'usage', 'top', 'export', 'audit', 'reconcile', 'limits', 'purse'], load: () => import('./commands/account/credits.ts') },
  { name: 'budgets', group: 'Account', summary: 'Limit what may be spent', subcommands: ['list', 'create', 'delete'], load: () => import('./commands/account/budgets.ts') },
  { name: 'keys', group: 'Account', summary: 'Create, list, rotate and revoke API keys', subcommands: ['create', 'list', 'rotate', 'revoke'], load: () => import('./commands/account/keys.ts') },
  { name: 'workspaces', group: 'Account', summary: 'List, create and delete workspaces, and say what they allow', subcommands: ['list', 'create', 'policy', 'delete'], load: () => import('./commands/account/workspaces.ts') },
  { name: 'providers', group: 'Account', summary: 'Bring keys of your own for vendors', subcommands: ['list', 'set', 'test', 'disable', 'delete', 'rotate'], load: () => import('./commands/account/providers.ts') },
  { name: 'webhooks', group: 'Account', summary: 'Have events posted to a URL', subcommands: ['list', 'create', 'ping', 'deliveries', 'replay', 'rotate', 'enable', 'disable', 'delete'], load: () => import('./commands/account/webhooks.ts') },
  { name: 'sinks', group: 'Account', summary: 'List receivers of events; send events again', subcommands: ['list', 'replay'], load: () => import('./commands/account/sinks.ts') },
  { name: 'audit', group: 'Account', summary: 'Show who changed what', load: () => import('./commands/account/audit.ts') },

  { name: 'doctor', group: 'Server', summary: 'Check this machine and say what to fix', load: () => import('./commands/server/doctor.ts') },
  { name: 'serve', group: 'Server', summary: 'Run the server in the foreground', load: () => import('./commands/server/serve.ts') },
  { name: 'daemon', group: 'Server', summary: 'Look after the local server', subcommands: ['status', 'start', 'stop', 'restart'], load: () => import('./commands/server/daemon.ts') },
  { name: 'version', group: 'Server', summary: 'Show the versions of command and server', load: () => import('./commands/server/version.ts') },
  { name: 'import', group: 'Server', summary: 'Report on the store of an older version', subcommands: ['legacy'], load: () => import('./commands/server/import.ts') },
  { name: 'completion', group: 'Server', summary: 'Print completion for bash, zsh or fish', subcommands: ['bash', 'zsh', 'fish'], load: () => import('./commands/server/completion.ts') },
  { name: 'complete', group: null, summary: 'List the possible next words of a line, for completion', load: () => import('./commands/server/complete.ts') },
  { name: 'proxy', group: null, runsProgram: true, summary: 'The ProxyCommand of `sandboxer ssh`', load: () => import('./commands/inside/proxy.ts') },
  { name: 'daemon-process', group: null, summary: 'The local server itself', load: () => import('./commands/server/daemon-process.ts') },
];

/**
 * Returns the further names of a command: its aliases, and where it lists things, their name in the singular, unless that is a
 * command itself.
 */
export function otherNamesOf({ name, aliases = [], subcommands }: CommandEntry): readonly string[] {
  const singular = subcommands?.includes('list') && name.endsWith('s') ? name.slice(0, -1) : null;
  if (singular === null || aliases.includes(singular) || COMMANDS.some((other) => other.name === singular))
    return aliases;
  return [...aliases, singular];
}

export function findCommand(name: string): CommandEntry | undefined {
  return COMMANDS.find((entry) => entry.name === name || otherNamesOf(entry).includes(name));
}

/** Table in the form that commands get. */
export const COMMAND_TABLE: CommandTable = { entries: COMMANDS, find: findCommand };
