#!/bin/sh
# Builds the programs that a published package brings ready-made: agent/prebuilt/linux-x64 and agent/prebuilt/linux-arm64.
#
#   scripts/build-prebuilt.sh            for both; the other one needs a cross compiler
#   scripts/build-prebuilt.sh arm64      for this one alone
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
[ $# -gt 0 ] || set -- x64 arm64

for processor in "$@"; do
  case $processor in
    x64) machine=x86_64 package=gcc-x86-64-linux-gnu ;;
    arm64) machine=aarch64 package=gcc-aarch64-linux-gnu ;;
    *) echo "build-prebuilt: $processor is not a processor that packages are made for: x64, arm64" >&2; exit 1 ;;
  esac
  (
    export AGENT_BUILD_DIR="$root/agent/prebuilt/linux-$processor"
    if [ "$(uname -m)" != "$machine" ]; then
      export CC="$machine-linux-gnu-gcc"
      command -v "$CC" >/dev/null 2>&1 || {
        echo "build-prebuilt: no $CC: install the Debian package $package" >&2
        exit 1
      }
    fi
    sh "$root/scripts/build-agent.sh" && sh "$root/scripts/build-spawner.sh"
  )
done
