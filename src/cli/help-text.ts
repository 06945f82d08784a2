import { COMMANDS } from './command-table.ts';

const INTRODUCTION = `Usage: sandboxer [options] <command>

Establishes sandboxes. Without a server configured, one is started for you on
this machine.
`;

const GLOBAL_OPTIONS = `Options, before or after the command:
  --json             answer as JSON, streams as one JSON document per line
  --url <address>    http://…, https://… or unix:/path     [SANDBOXER_URL]
  --key <secret>     API key                               [SANDBOXER_KEY]
  --workspace <id>   another workspace than the key's own  [SANDBOXER_WORKSPACE]
  -q, --quiet        only what was asked for: ids, no progress, no notes
  --no-color         no colours                            [NO_COLOR]
  -h, --help         help; also for each command
  -V, --version      the version of this command
`;

const EXAMPLES = `Examples:
  sandboxer run -- uname -a
  sandboxer run --workdir . --profile agent-dev -- npm test
  sandboxer create --profile agent-dev --ttl 2h
  sandboxer exec <id> -- ls -la
  sandboxer cp ./src <id>:/work/src
`;

/** Formats the help from the table alone, so that it costs no command's import. */
export function helpText(): string {
  const shown = COMMANDS.filter(({ group }) => group !== null);
  const width = Math.max(...shown.map(({ name, aliases }) => [name, ...(aliases ?? [])].join(', ').length));
  const groups = new Map<string, string>();
  for (const { name, aliases, summary, group } of shown) {
    if (group === null) continue;
    const names = [name, ...(aliases ?? [])].join(', ').padEnd(width);
    groups.set(group, `${groups.get(group) ?? ''}  ${names}  ${summary}\n`);
  }
  const commands = [...groups].map(([group, lines]) => `${group}:\n${lines}`);
  return [INTRODUCTION, ...commands, GLOBAL_OPTIONS, EXAMPLES].join('\n');
}
