import type { Command } from 'commander';
import { chosenArgument } from '../../args/choices.ts';
import type { Invocation } from '../../invocation/invocation.ts';

/** Shell scripts that ask `sandboxer complete` for candidates; without an answer, they complete paths. */
const SCRIPTS = {
  bash: `# bash completion of sandboxer: source <(sandboxer completion bash)
_sandboxer() {
  local line
  COMPREPLY=()
  while IFS= read -r line; do COMPREPLY+=("\${line%%$'\\t'*}"); done \\
    < <("\${COMP_WORDS[0]}" complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  if [[ \${#COMPREPLY[@]} -eq 1 && \${COMPREPLY[0]} == *: ]]; then compopt -o nospace 2>/dev/null; fi
}
complete -o default -F _sandboxer sandboxer
`,
  zsh: `#compdef sandboxer
# zsh completion of sandboxer: sandboxer completion zsh > "\${fpath[1]}/_sandboxer"
_sandboxer() {
  local -a found
  local line value
  for line in "\${(@f)$(\${words[1]} complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    [[ -n $line ]] || continue
    value=\${line%%$'\\t'*}
    found+=("\${value//:/\\\\:}:\${line#*$'\\t'}")
  done
  if (( $#found )); then _describe -t sandboxer sandboxer found; else _files; fi
}
compdef _sandboxer sandboxer
`,
  fish: `# fish completion of sandboxer: sandboxer completion fish > ~/.config/fish/completions/sandboxer.fish
function __sandboxer_ask
  set -l words (commandline -opc)
  set -l current (commandline -ct)
  test (count $current) -gt 0; or set current ''
  set -g __sandboxer_found ($words[1] complete -- $words[2..-1] $current 2>/dev/null)
  test (count $__sandboxer_found) -gt 0
end
complete -c sandboxer -e
complete -c sandboxer -f -n __sandboxer_ask -a '$__sandboxer_found'
`,
} as const;

type Shell = keyof typeof SCRIPTS;

export function define(command: Command, invocation: Invocation): void {
  const shells = Object.keys(SCRIPTS) as Shell[];
  chosenArgument(command, '<shell>', 'bash, zsh or fish', shells).action((shell: Shell) => {
    const script = SCRIPTS[shell].trimEnd();
    invocation.printer.result({ shell, script }, () => invocation.printer.line(script));
  });
}
