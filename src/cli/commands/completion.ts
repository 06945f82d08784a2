import type { Command } from 'commander';
import type { CommandEntry } from '../command-table.ts';
import { COMMANDS } from '../command-table.ts';
import type { Invocation } from '../invocation.ts';

const GLOBAL_FLAGS = '--json --url --key --workspace --quiet --no-color --help';
/** Commands whose first argument is a sandbox. */
const TAKES_ID =
  'get extend pause resume recreate fork destroy rm events usage exec shell cp sync ps logs port-forward url ssh snapshot';

const SHOWN = COMMANDS.filter(({ group }) => group !== null);
const namesOf = ({ name, aliases }: CommandEntry) => [name, ...(aliases ?? [])];
const ALL_NAMES = SHOWN.flatMap(namesOf).join(' ');
const WITH_SUBCOMMANDS = SHOWN.filter(({ subcommands }) => subcommands !== undefined);

function bash(): string {
  const cases = WITH_SUBCOMMANDS.map(
    ({ name, subcommands }) =>
      `    ${name}) COMPREPLY=($(compgen -W "${subcommands?.join(' ')}" -- "$word")) ;;`,
  );
  return `# bash completion of sandboxer: source <(sandboxer completion bash)
_sandboxer() {
  local word=\${COMP_WORDS[COMP_CWORD]} command=\${COMP_WORDS[1]}
  COMPREPLY=()
  if [[ $word == -* ]]; then COMPREPLY=($(compgen -W "${GLOBAL_FLAGS}" -- "$word")); return; fi
  if [[ $COMP_CWORD -eq 1 ]]; then COMPREPLY=($(compgen -W "${ALL_NAMES}" -- "$word")); return; fi
  case $command in
${cases.join('\n')}
    ${TAKES_ID.replaceAll(' ', '|')}) COMPREPLY=($(compgen -W "$(sandboxer list --quiet 2>/dev/null)" -- "$word")) ;;
  esac
}
complete -o default -F _sandboxer sandboxer
`;
}

function zsh(): string {
  const commands = SHOWN.flatMap((entry) =>
    namesOf(entry).map((name) => `    '${name}:${entry.summary.replaceAll("'", '’')}'`),
  );
  const cases = WITH_SUBCOMMANDS.map(
    ({ name, subcommands }) => `    ${name}) compadd ${subcommands?.join(' ')} ;;`,
  );
  return `#compdef sandboxer
# zsh completion of sandboxer: sandboxer completion zsh > "\${fpath[1]}/_sandboxer"
_sandboxer() {
  local -a commands
  commands=(
${commands.join('\n')}
  )
  if (( CURRENT == 2 )); then _describe command commands; return; fi
  if [[ $words[CURRENT] == -* ]]; then compadd -- ${GLOBAL_FLAGS}; return; fi
  case $words[2] in
${cases.join('\n')}
    ${TAKES_ID.replaceAll(' ', '|')}) compadd -- $(sandboxer list --quiet 2>/dev/null); _files ;;
  esac
}
compdef _sandboxer sandboxer
`;
}

function fish(): string {
  const lines = SHOWN.flatMap((entry) => [
    ...namesOf(entry).map(
      (name) =>
        `complete -c sandboxer -f -n __fish_use_subcommand -a ${name} -d '${entry.summary.replaceAll("'", '’')}'`,
    ),
    ...(entry.subcommands ?? []).map(
      (name) => `complete -c sandboxer -f -n '__fish_seen_subcommand_from ${entry.name}' -a ${name}`,
    ),
  ]);
  return `# fish completion of sandboxer: sandboxer completion fish > ~/.config/fish/completions/sandboxer.fish
${lines.join('\n')}
complete -c sandboxer -n '__fish_seen_subcommand_from ${TAKES_ID}' -a '(sandboxer list --quiet 2>/dev/null)'
complete -c sandboxer -l json -l quiet -l no-color -l url -l key -l workspace
`;
}

const SHELLS = { bash, zsh, fish } as const;

export function define(command: Command, invocation: Invocation): void {
  command.argument('<shell>', 'bash, zsh or fish').action((shell: keyof typeof SHELLS) => {
    const script = SHELLS[shell]().trimEnd();
    invocation.printer.result({ shell, script }, () => invocation.printer.line(script));
  });
}
