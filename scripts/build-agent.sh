#!/bin/sh
# Builds the in-sandbox agent, statically, into agent/build/. Does nothing, fast, when it is newer than its sources.
#
#   scripts/build-agent.sh              agent/build/sandboxer-agent
#   scripts/build-agent.sh --sanitize   agent/build/sandboxer-agent-sanitized, with address and undefined-behaviour checks
#
# AGENT_BUILD_DIR is another place for it. CC chooses the compiler; without it musl-gcc is taken where it is (a smaller
# binary), otherwise cc.
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
build=${AGENT_BUILD_DIR:-$root/agent/build}
target=$build/sandboxer-agent
sanitize=false
[ "${1:-}" = --sanitize ] && sanitize=true && target=$build/sandboxer-agent-sanitized

say() { printf 'build-agent: %s\n' "$*" >&2; }

if [ -x "$target" ]; then
  newer=$(find "$root/agent" -maxdepth 1 -name '*.[ch]' -newer "$target" | head -n 1)
  [ -z "$newer" ] && [ ! "$root/scripts/build-agent.sh" -nt "$target" ] && exit 0
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
flags='-std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -fno-common'
if $sanitize; then
  flags="$flags -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=undefined -DAGENT_PLAIN_FORK"
else
  flags="$flags -O2 -static -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 -fstack-protector-strong -ffunction-sections
    -fdata-sections -fno-plt -Wl,--gc-sections -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack -s"
fi
temporary=$target.$$
trap 'rm -f "$temporary"' EXIT
# shellcheck disable=SC2086 # flags and sources are lists
if ! $compiler $flags -o "$temporary" "$root"/agent/*.c; then
  say "$compiler failed (see above); a static C library is needed: Debian package libc6-dev or musl-tools"
  exit 1
fi
# For every user of this machine to copy: who puts it into a sandbox makes that copy unreadable there.
chmod 0755 "$temporary"
mv "$temporary" "$target"
