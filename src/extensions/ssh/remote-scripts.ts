/**
 * What is run on the host, for `/bin/sh`. A sandbox is the directory `$base/s/<attempt>`; the marker `$base/m/<attempt>`
 * is written before it and removed after it, so that whatever is there can be found and told from what is not ours.
 */

/** Arguments: base, attempt, agent; the marker on standard input. */
export const PROVISION = `
set -e
base=$1 attempt=$2 agent=$3 dir=$1/s/$2
umask 077
mkdir -p "$base/m" "$base/s"
[ -e "$base/m/$attempt" ] || { cat >"$base/m/.$attempt.$$" && mv "$base/m/.$attempt.$$" "$base/m/$attempt"; }
mkdir -p "$dir/work"
"$agent" --listen "$dir/a" --daemon --user "$(id -u)" --cwd "$dir/work" 2>"$dir/log" || [ -S "$dir/a" ] || { cat "$dir/log" >&2; exit 1; }
`;

/** Arguments: base, attempt, owner. Touches nothing whose marker does not name the owner. */
export const TEARDOWN = String.raw`
base=$1 attempt=$2 owner=$3 dir=$1/s/$2 marker=$1/m/$2
if [ -e "$marker" ]; then
  [ "$(head -n 1 "$marker")" = "$owner" ] || { echo foreign; exit 0; }
elif [ ! -e "$dir" ]; then echo gone; exit 0
else echo unmarked; exit 0; fi
real=$(cd "$dir" 2>/dev/null && pwd -P)
agents() {
  for p in /proc/[0-9]*; do
    tr '\0' '\n' <"$p/cmdline" 2>/dev/null | grep -Fqx -- "$dir/a" || continue
    tr '\0' '\n' <"$p/cmdline" 2>/dev/null | grep -Fqx -e --listen && echo "${'$'}{p#/proc/}"
  done
}
inside() {
  [ -n "$real" ] || return
  for p in /proc/[0-9]*; do
    case $(readlink "$p/cwd" 2>/dev/null)/ in "$real"/*) echo "${'$'}{p#/proc/}";; esac
  done
}
# It ends what it has started.
kill -TERM $(agents) 2>/dev/null
n=0; while [ -n "$(agents)" ] && [ $n -lt 30 ]; do sleep 0.1; n=$((n+1)); done
kill -KILL $(agents) $(inside) 2>/dev/null
chmod -R u+rwX "$dir" 2>/dev/null
rm -rf "$dir" && [ ! -e "$dir" ] && rm -f "$marker" && echo gone
`;

/** Argument: base. The markers, each as `<attempt> <owner> <sandbox> <time>`; directories without one as `<attempt>`. */
export const LIST = String.raw`
cd "$1/m" 2>/dev/null || exit 0
for f in *; do [ -f "$f" ] && printf '%s %s\n' "$f" "$(tr '\n' ' ' <"$f")"; done
for d in "$1"/s/*; do [ -d "$d" ] && [ ! -e "$1/m/${'$'}{d##*/}" ] && printf '%s\n' "${'$'}{d##*/}"; done
exit 0
`;
