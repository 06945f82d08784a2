#!/bin/sh
# Builds the in-sandbox agent, statically, into agent/build/. Does nothing, fast, when it is newer than its sources.
#
#   scripts/build-agent.sh              agent/build/sandboxer-agent
#   scripts/build-agent.sh --sanitize   agent/build/sandboxer-agent-sanitized, with address and undefined-behaviour checks
#
# AGENT_BUILD_DIR is another place for it. CC chooses the compiler; without it musl-gcc is taken where it is (a smaller
# binary), otherwise cc. AGENT_SYMBOLS=1 keeps the symbols.
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
build=${AGENT_BUILD_DIR:-$root/agent/build}
target=$build/sandboxer-agent
sanitize=false
[ "${1:-}" = --sanitize ] && sanitize=true && target=$build/sandboxer-agent-sanitized

say() { printf 'build-agent: %s\n' "$*" >&2; }

if [ -x "$target" ]; then
  newer=$(find "$root/agent" -name spawner -prune -o -name '*.[ch]' -newer "$target" -print | head -n 1)
  [ -z "$newer" ] && [ ! "$root/scripts/build-agent.sh" -nt "$target" ] &&
    [ ! "$root/scripts/hardened-flags.sh" -nt "$target" ] && exit 0
fi

if [ -n "${CC:-}" ]; then compiler=$CC
elif ! $sanitize && command -v musl-gcc >/dev/null 2>&1; then compiler=musl-gcc
else
  compiler=
  for candidate in cc gcc clang; do
    if command -v "$candidate" >/dev/null 2>&1; then compiler=$candidate; break; fi
  done
fi
if [ -z "$compiler" ]; then
  say 'no C compiler: install the Debian packages gcc and libc6-dev (or musl-tools), then run again'
  exit 1
fi

mkdir -p "$build"
target=$(cd "$build" && pwd)/${target##*/}
flags='-std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -fno-common'
if $sanitize; then
  flags="$flags -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=undefined -DAGENT_PLAIN_FORK"
else
  flags="$flags -O2 -ffunction-sections -fdata-sections -fno-plt -Wl,--gc-sections
    $(sh "$root/scripts/hardened-flags.sh" "$compiler")"
  [ -n "${AGENT_SYMBOLS:-}" ] || flags="$flags -s"
fi

# Static, and loaded at an address that differs each time. The start files of musl-gcc's own choice are of a program that is
# not: those of static programs lie beside its specs.
place='-static-pie -fPIE' first='' last=''
musl=$($compiler -v 2>&1 | sed -n 's|^Reading specs from \(.*\)/musl-gcc.specs$|\1|p' | head -n 1)
if $sanitize; then place=
elif [ -n "$musl" ] && [ -e "$musl/rcrt1.o" ]; then
  place='-static -fPIE -nostartfiles -Wl,-pie -Wl,--no-dynamic-linker -Wl,-z,text'
  first="$musl/rcrt1.o $musl/crti.o" last="$musl/crtn.o"
elif [ -n "$musl" ]; then place='-static'
fi
temporary=$target.$$
trap 'rm -f "$temporary"' EXIT
# Relative names: the directory of a checkout may have spaces in its name.
cd "$root/agent"
sources=$(find . -name spawner -prune -o -name '*.c' -print | LC_ALL=C sort)
# shellcheck disable=SC2086 # flags and files are lists
if ! $compiler $flags $place -include fortify.h -o "$temporary" $first $sources $last; then
  say "$compiler failed (see above); a static C library is needed: Debian package libc6-dev or musl-tools"
  exit 1
fi
# For every user of this machine to copy: who puts it into a sandbox makes that copy unreadable there.
chmod 0755 "$temporary"
mv "$temporary" "$target"
