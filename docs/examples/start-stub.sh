#!/bin/sh
# Starts the stub backend in the background and writes a configuration for it: for tutorials, demos and tests.
# It isolates nothing: what runs in its sandboxes runs on this machine as you.
#
#   sh docs/examples/start-stub.sh DIRECTORY     afterwards: DIRECTORY/config.yaml, DIRECTORY/stub.pid
set -eu
directory=$1
root=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
node=$root/node_modules/.bin/node
[ -x "$node" ] || node=node

mkdir -p "$directory"
directory=$(CDPATH='' cd -- "$directory" && pwd)
printf 'demo\n' >"$directory/stub.key"
SANDBOXER_STUB_CONFIG="{\"directory\":\"$directory/stub\",\"key\":\"demo\",\"keys\":[\"demo-vendor-key-4711\"],\"socket_path\":\"$directory/stub.sock\"}" \
  "$node" --disable-warning=ExperimentalWarning "$root/src/extensions/saas-stub/server/start-server.ts" \
  >"$directory/stub.log" 2>&1 </dev/null &
echo $! >"$directory/stub.pid"

tries=0
until [ -S "$directory/stub.sock" ]; do
  tries=$((tries + 1))
  [ "$tries" -lt 100 ] || { cat "$directory/stub.log" >&2; exit 1; }
  sleep 0.1
done
cat >"$directory/config.yaml" <<EOF
extensions:
  saas_stub:
    default: { url: "unix:$directory/stub.sock", key_file: "$directory/stub.key" }
EOF
echo "The stub backend runs; its configuration is $directory/config.yaml"
