#!/bin/sh
# Prepares the checkout, then runs the test levels on its own Node.js: scripts/test.sh [--whole] [LEVEL…] [-- ARGUMENTS]
# With --whole, tests that go through a part of a long list go through all of it.
set -eu
if [ "${1:-}" = --whole ]; then
  shift
  SANDBOXER_WHOLE=1
  export SANDBOXER_WHOLE
fi
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
sh "$root/scripts/setup.sh" --tests
PATH=$root/node_modules/.bin:$PATH
export PATH
exec node --disable-warning=ExperimentalWarning "$root/scripts/test.ts" "$@"
