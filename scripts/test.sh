#!/bin/sh
# Prepares the checkout, then runs the test levels on its own Node.js: scripts/test.sh [LEVEL…] [-- ARGUMENTS]
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
sh "$root/scripts/setup.sh" --tests
PATH=$root/node_modules/.bin:$PATH
export PATH
exec node --disable-warning=ExperimentalWarning "$root/scripts/test.ts" "$@"
