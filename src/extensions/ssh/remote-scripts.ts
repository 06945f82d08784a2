/**
 * Scripts for the host, for `/bin/sh`. A sandbox is the directory `$base/s/<attempt>`; the marker `$base/m/<attempt>` is written
 * before it and removed after it, so that every sandbox can be found and told from other files. One agent (`a`) starts programs;
 * another (`f`), which the kernel confines, serves files.
 */

/** Places secrets in memory, where there is such a file system. */
const SECRETS = `
shm=/dev/shm/sandboxer-$(id -u)
{ mkdir -p "$shm" && [ -O "$shm" ] && chmod 700 "$shm"; } 2>/dev/null || shm=$base/secrets
secrets=$shm/$attempt
`;

/** Exit code of an agent that finds another one listening. */
const AGENT_IS_THERE = 3;

export const EXIT = { root: 78, cannotConfine: 79 } as const;

/**
 * Arguments: base, attempt, agent, isolation, open files (or empty). Standard input: the three lines of the marker, then secrets
 * as `<delivery> <name> <base64>`. Prints where secrets are, and whether files can be served.
 */
export const PROVISION = String.raw`
set -e
base=$1 attempt=$2 agent=$3 level=$4 files=$5 dir=$1/s/$2
umask 077
confines=no; "$agent" --can-confine && confines=yes
if [ "$level" = policy ]; then
  [ "$(id -u)" != 0 ] || exit ${EXIT.root}
  [ $confines = yes ] || exit ${EXIT.cannotConfine}
fi
mkdir -p "$base/m" "$base/s"
read -r owner; read -r uid; read -r time
[ -e "$base/m/$attempt" ] || { printf '%s\n' "$owner" "$uid" "$time" >"$base/m/.$attempt.$$" && mv "$base/m/.$attempt.$$" "$base/m/$attempt"; }
mkdir -p "$dir/work" "$dir/tmp"
${SECRETS}
while read -r kind name value; do
  mkdir -p "$secrets"
  case $kind in
    file) printf %s "$value" | base64 -d >"$secrets/$name"; chmod 400 "$secrets/$name";;
    env) printf '%s %s\n' "$name" "$value" >>"$secrets/.environment";;
  esac
done
start() {
  socket=$1; shift
  "$agent" --listen "$socket" --daemon --user "$(id -u)" --cwd "$dir/work" "$@" 2>"$dir/log" || [ $? = ${AGENT_IS_THERE} ] || { cat "$dir/log" >&2; exit 1; }
}
if [ "$level" = policy ]; then
  set --
  for path in /usr /bin /sbin /lib /lib32 /lib64 /libx32 /etc /opt /nix /proc /sys /dev /run/systemd/resolve "$secrets"; do set -- "$@" --confine-read "$path"; done
  for path in "$dir/work" "$dir/tmp" /dev/null /dev/zero /dev/full /dev/random /dev/urandom /dev/tty /dev/ptmx /dev/pts; do set -- "$@" --confine-write "$path"; done
  start "$dir/a" "$@" ${'$'}{files:+--nofile "$files"}
else start "$dir/a" ${'$'}{files:+--nofile "$files"}; fi
[ $confines = no ] || start "$dir/f" --confine-write "$dir/work" --confine-write /dev/null
echo "secrets $secrets"
echo "files $confines"
`;

/** Arguments: base, attempt, owner. Removes nothing whose marker does not name the owner. */
export const TEARDOWN = String.raw`
base=$1 attempt=$2 owner=$3 dir=$1/s/$2 marker=$1/m/$2
if [ -e "$marker" ]; then
  [ "$(head -n 1 "$marker")" = "$owner" ] || { echo foreign; exit 0; }
elif [ ! -e "$dir" ]; then echo gone; exit 0
else echo unmarked; exit 0; fi
real=$(cd "$dir" 2>/dev/null && pwd -P)
ids() { sed 's,^/proc/,,; s,/.*,,'; }
agents() {
  found=$(grep -lzFx -e "$dir/a" -e "$dir/f" /proc/[0-9]*/cmdline 2>/dev/null)
  [ -z "$found" ] || grep -lzFx -e --listen $found 2>/dev/null | ids
}
inside() {
  [ -z "$real" ] || find /proc/[0-9]*/cwd \( -lname "$real" -o -lname "$real/*" \) 2>/dev/null | ids
}
# They end what they have started.
kill -TERM $(agents) 2>/dev/null
n=0; while [ -n "$(agents)" ] && [ $n -lt 30 ]; do sleep 0.1; n=$((n+1)); done
kill -KILL $(agents) $(inside) 2>/dev/null
chmod -R u+rwX "$dir" 2>/dev/null
${SECRETS}
rm -rf "$secrets" && rm -rf "$dir" && [ ! -e "$dir" ] && rm -f "$marker" && echo gone
`;

/** Argument: base. Prints the markers, each as `<attempt> <owner> <sandbox> <time>`; directories without one as `<attempt>`. */
export const LIST = String.raw`
cd "$1/m" 2>/dev/null || exit 0
for f in *; do [ -f "$f" ] && printf '%s %s\n' "$f" "$(tr '\n' ' ' <"$f")"; done
for d in "$1"/s/*; do [ -d "$d" ] && [ ! -e "$1/m/${'$'}{d##*/}" ] && printf '%s\n' "${'$'}{d##*/}"; done
exit 0
`;

/** Argument: the directory of secrets → those for the environment, as `<name> <base64>`. */
export const ENVIRONMENT = '[ ! -e "$1/.environment" ] || cat "$1/.environment"';
