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
revision=$(cat "$source"/*.[ch] "$source"/*.map | cksum | tr ' ' '-')
temporary=$build/.spawner.$$
trap 'rm -f "$temporary" "$temporary.sudo" "$temporary.so"' EXIT
flags="-std=gnu11 -O2 -Wall -Wextra -Werror -Wshadow -Wno-format-truncation $(sh "$root/scripts/hardened-flags.sh" "$cc")"
[ -n "${AGENT_SYMBOLS:-}" ] || flags="$flags -s"
static="$flags -static-pie -fPIE"
$sanitize && static='-std=gnu11 -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=undefined'
# shellcheck disable=SC2086 # a list of flags
"$cc" $static -DSPAWNER_BUILD="\"$revision\"" -o "$temporary" "$source"/main.c "$source"/control.c "$source"/sandbox*.c "$source"/inspect.c "$source"/host-parts.c "$source"/unpack.c "$source"/volume.c \
  "$source"/launcher.c "$source"/mounter.c "$source"/keeper.c "$source"/birth.c "$source"/pass-fds.c "$source"/scatter.c "$source"/cgroup.c "$source"/slot.c "$source"/slot-limits.c "$source"/slot-use.c "$source"/idmap.c "$source"/capabilities.c "$source"/confine.c "$source"/overlay.c "$source"/disk.c "$source"/disk-watch.c "$source"/disk-count.c "$source"/tree.c "$source"/tree-walk.c "$source"/file-copy.c "$source"/pack.c "$source"/subvolume.c "$source"/work.c "$source"/rootless.c "$source"/runtime.c "$source"/binds.c "$source"/targets.c
if $sanitize; then
  mv "$temporary" "$build/sandboxer-spawner-sanitized"
  exit 0
fi
# shellcheck disable=SC2086
"$cc" $static -o "$temporary.sudo" "$source"/sudo.c
# Without it the runtime is loaded for every sandbox anew. It goes into the runtime, and must be of its C library.
# shellcheck disable=SC2086
if "$cc" $flags -shared -fPIC -fvisibility=hidden \
  -Wl,-soname,libsystemd.so.0 -Wl,--version-script="$source/no-systemd.map" \
  -o "$temporary.so" "$source"/preload.c "$source"/birth.c "$source"/pass-fds.c "$source"/no-systemd.c -ldl; then
  mv "$temporary.so" "$build/sandboxer-preload.so"
else echo 'build: sandboxes will start more slowly: a shared library cannot be built' >&2
fi
mv "$temporary.sudo" "$build/sandboxer-sudo"
mv "$temporary" "$build/sandboxer-spawner"
