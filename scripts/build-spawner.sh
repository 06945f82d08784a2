#!/bin/sh
# Builds agent/build/sandboxer-spawner and agent/build/sandboxer-sudo: static, for this machine. Does nothing when they
# are newer than their sources. AGENT_BUILD_DIR is another place for them, CC another compiler; AGENT_SYMBOLS=1 keeps the
# symbols. Speaks on stderr.
#
#   scripts/build-spawner.sh --sanitize   sandboxer-spawner-sanitized, with address and undefined-behaviour checks, and nothing else
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
source=$root/agent/spawner
build=${AGENT_BUILD_DIR:-$root/agent/build}
cc=${CC:-cc}

up_to_date() {
  [ -x "$build/sandboxer-spawner" ] && [ -x "$build/sandboxer-sudo" ] || return 1
  for script in build-spawner hardened-flags; do
    [ ! "$root/scripts/$script.sh" -nt "$build/sandboxer-spawner" ] || return 1
  done
  [ -z "$(find "$source" \( -name '*.[ch]' -o -name '*.map' \) -newer "$build/sandboxer-spawner" | head -n 1)" ]
}

sanitize=false
[ "${1:-}" = --sanitize ] && sanitize=true
if $sanitize; then
  [ -z "$(find "$source" -name '*.[ch]' -newer "$build/sandboxer-spawner-sanitized" 2>&1 | head -n 1)" ] && exit 0
elif up_to_date; then exit 0
fi
if ! command -v "$cc" >/dev/null 2>&1; then
  echo "build: no C compiler; install one (Debian: apt-get install gcc libc6-dev) and run scripts/build-spawner.sh" >&2
  exit 1
fi
mkdir -p "$build"
build=$(cd "$build" && pwd)
# Relative names: the directory of a checkout may have spaces in its name.
cd "$source"
in_order() { find . "$@" | LC_ALL=C sort; }
# shellcheck disable=SC2046 # a list of files
revision=$(cat $(in_order -name '*.[ch]' -o -name '*.map') | cksum | tr ' ' '-')
temporary=$build/.spawner.$$
trap 'rm -f "$temporary" "$temporary.sudo" "$temporary.so"' EXIT
flags="-std=gnu11 -O2 -Wall -Wextra -Werror -Wshadow -Wno-format-truncation $(sh "$root/scripts/hardened-flags.sh" "$cc")"
[ -n "${AGENT_SYMBOLS:-}" ] || flags="$flags -s"
static="$flags -static-pie -fPIE"
$sanitize && static='-std=gnu11 -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=undefined'
# Two of them are of a library of its own, one is another program.
# shellcheck disable=SC2046,SC2086 # flags and files are lists
"$cc" $static -DSPAWNER_BUILD="\"$revision\"" -o "$temporary" \
  $(in_order -name '*.c' ! -name preload.c ! -name no-systemd.c ! -name sudo.c)
if $sanitize; then
  mv "$temporary" "$build/sandboxer-spawner-sanitized"
  exit 0
fi
# shellcheck disable=SC2046,SC2086
"$cc" $static -o "$temporary.sudo" $(in_order -name sudo.c)
# Without it the runtime is loaded for every sandbox anew. It goes into the runtime, and must be of its C library.
# shellcheck disable=SC2046,SC2086
if "$cc" $flags -shared -fPIC -fvisibility=hidden \
  -Wl,-soname,libsystemd.so.0 -Wl,--version-script="$(in_order -name no-systemd.map)" \
  -o "$temporary.so" $(in_order -name preload.c -o -name birth.c -o -name pass-fds.c -o -name no-systemd.c) -ldl; then
  mv "$temporary.so" "$build/sandboxer-preload.so"
else echo 'build: sandboxes will start more slowly: a shared library cannot be built' >&2
fi
mv "$temporary.sudo" "$build/sandboxer-sudo"
mv "$temporary" "$build/sandboxer-spawner"
