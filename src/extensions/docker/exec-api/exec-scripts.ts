/** Scripts that run inside where the agent cannot: POSIX shell, and tools that every userland has. */

/** Exit codes by which a script gives the reason of a refusal. */
export const SCRIPT_CODE = { missing: 44, refused: 45 } as const;

/** Secrets for the environment, as a script of exports: in memory only, and in no request to the engine. */
export const ENVIRONMENT = '/run/secrets/.environment.sh';

/** Name of the variable that marks a program and its children, so that they are found again. */
export const MARK = 'SANDBOXER_EXEC';

/** `cwd rows cols program…`: becomes the program. */
export const START = [
  `[ ! -r ${ENVIRONMENT} ] || . ${ENVIRONMENT}`,
  '[ -z "$1" ] || cd -- "$1" || exit 126',
  '[ -z "$2" ] || stty rows "$2" cols "$3" 2>/dev/null',
  'shift 3',
  'exec "$@"',
].join('\n');

/** `mark signal passes`: signals every process that carries the mark, and prints how many the first pass found. */
export const SIGNAL = [
  'first= n=0',
  'while [ "$n" -lt "$3" ]; do',
  '  pids= count=0',
  '  for p in /proc/[0-9]*; do',
  `    tr '\\0' '\\n' <"$p/environ" 2>/dev/null | grep -qxF "$1" || continue`,
  '    pids="$pids $(basename "$p")" count=$((count+1))',
  '  done 2>/dev/null',
  '  [ -n "$first" ] || first=$count',
  '  [ "$count" -gt 0 ] || break',
  '  kill -s "$2" $pids 2>/dev/null',
  '  n=$((n+1))',
  'done',
  'echo "$first"',
].join('\n');

const PRELUDE = [
  'missing() { [ ! -e "$1" ] && [ ! -L "$1" ]; }',
  `gone() { echo "no such file or directory" >&2; exit ${SCRIPT_CODE.missing}; }`,
  `refuse() { echo "$1" >&2; exit ${SCRIPT_CODE.refused}; }`,
  `entry() { printf '%s\\0%s\\0%s\\0' "$(stat -c '%f %s %Y' "$1")" "$2" "$(readlink "$1")"; }`,
];

function script(...lines: string[]): string {
  return [...PRELUDE, ...lines].join('\n');
}

export const STAT = script('missing "$1" && gone', 'entry "$1" ""');

/** `path limit`: prints one entry more than the limit when there are more. */
export const LIST = script(
  'missing "$1" && gone',
  '[ -d "$1" ] || refuse "not a directory"',
  'cd "$1" || refuse "not to be entered"',
  'n=0',
  'for f in * .[!.]* ..?*; do',
  '  missing "./$f" && continue',
  '  entry "./$f" "$f"',
  '  n=$((n+1)); [ "$n" -le "$2" ] || break',
  'done',
);

/** `path offset length`: prints the size of the whole file in a line of its own, then the bytes. */
export const READ = script(
  'missing "$1" && gone',
  '[ -d "$1" ] && refuse "is a directory"',
  '[ -e "$1" ] || gone',
  '[ -f "$1" ] || refuse "not a regular file"',
  '[ -r "$1" ] || refuse "permission denied"',
  'stat -L -c %s "$1" || refuse "cannot be read"',
  'if [ "$2$3" = 0 ]; then exec cat "$1"; fi',
  'if [ -z "$3" ]; then exec tail -c +$(($2+1)) "$1"; fi',
  'tail -c +$(($2+1)) "$1" | head -c "$3"',
);

/** `directory temporary`: stores the input in a temporary file beside its place until it is complete. */
export const RECEIVE = script(
  'mkdir -p "$1" || refuse "no such directory"',
  'umask 077; cat >"$2" || refuse "not writable"',
);

/** `temporary path size mode exclusive`: moves the complete file to its name. */
export const SETTLE = script(
  'fail() { rm -f "$1"; refuse "$2"; }',
  '[ "$(stat -c %s "$1")" = "$3" ] || fail "$1" "it did not arrive whole"',
  '[ -d "$2" ] && fail "$1" "is a directory"',
  'mode=$4; [ -n "$mode" ] || mode=$(stat -c %a "$2" 2>/dev/null) || mode=644',
  'chmod "$mode" "$1" || fail "$1" "its mode cannot be set"',
  'if [ -n "$5" ]; then ln "$1" "$2" 2>/dev/null || fail "$1" "it exists already"; rm -f "$1"',
  'else mv -f "$1" "$2" || fail "$1" "it cannot be replaced"; fi',
  'entry "$2" ""',
);

/** `path parents mode` */
export const MKDIR = script(
  'if [ -n "$2" ]; then [ -d "$1" ] && exit 0; mkdir -p -m "$3" "$1" || refuse "cannot be made"; exit 0; fi',
  'missing "$1" || refuse "it exists already"',
  '[ -d "$(dirname "$1")" ] || gone',
  'mkdir -m "$3" "$1" || refuse "cannot be made"',
);

/** `from to overwrite` */
export const MOVE = script(
  'missing "$1" && gone',
  '[ -d "$(dirname "$2")" ] || gone',
  'if ! missing "$2"; then',
  '  [ -n "$3" ] || refuse "it exists already"',
  '  if [ -d "$2" ] && [ ! -L "$2" ]; then rmdir "$2" || refuse "it is not empty"; fi',
  '  [ ! -L "$2" ] || rm -f "$2"',
  'fi',
  'mv -f "$1" "$2" || refuse "cannot be moved"',
);

/** `path recursive` */
export const REMOVE = script(
  'missing "$1" && exit 0',
  'if [ -n "$2" ]; then rm -rf "$1" || refuse "cannot be removed"; exit 0; fi',
  'if [ -d "$1" ] && [ ! -L "$1" ]; then rmdir "$1" || refuse "not empty"; exit 0; fi',
  'rm -f "$1" || refuse "cannot be removed"',
);

/** `path`: unpacks its input; every name in it was checked outside. */
export const UNPACK = script(
  'mkdir -p "$1" || refuse "no such directory"',
  'tar -xpf - -C "$1" || refuse "cannot be unpacked"',
);

/** `path`: prints a line of its own once the path is known to exist, then the archive. */
export const PACK = script(
  'missing "$1" && gone',
  'echo',
  'if [ -d "$1" ]; then exec tar -cf - -C "$1" .; fi',
  'exec tar -cf - -C "$(dirname "$1")" "./$(basename "$1")"',
);
