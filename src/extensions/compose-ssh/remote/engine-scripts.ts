/**
 * Parts of scripts that choose the engine of a stack. `docker` by itself reaches the rootful engine of the host, or the one that
 * its user configured; a rootless engine of that user is reached by its socket.
 *
 * The record of a stack, and of a snapshot, is the file `engine` in its directory: a kind and an endpoint, `rootless
 * unix:///run/user/1000/docker.sock`, or `rootful -`. It is written before anything is made and never changed. Without that file,
 * as in stacks of older versions, the engine is the rootful one. `<directory>/engines` has the record of every engine that was
 * ever used, so that a stack that lost its directory is still found.
 */
export const ENGINE = `
engine_kind=rootful; engine_at=-
use_engine() {
  engine_kind=$1; engine_at=$2
  case $2 in unix:///*) unset DOCKER_CONTEXT DOCKER_TLS DOCKER_TLS_VERIFY DOCKER_CERT_PATH; DOCKER_HOST=$2; export DOCKER_HOST;; esac
}
engine_of() { [ ! -e "$1/engine" ] || { read -r engine_kind engine_at <"$1/engine" && use_engine "$engine_kind" "$engine_at"; }; }
engines() { if [ -e "$1/engines" ]; then sort -u "$1/engines" | tr ' ' @; else echo rootful@-; fi; }
# Files of containers belong to ids that only a namespace with the same ids may read and remove.
as_owner() {
  if [ "$engine_kind" != rootless ]; then "$@"
  elif unshare --map-root-user --map-auto true 2>/dev/null; then unshare --map-root-user --map-auto "$@"
  elif rootlesskit true 2>/dev/null; then rootlesskit "$@"
  else "$@"; fi
}
`;

/** Records the engine unless a record exists. $1 root, $2 directory, $3 kind, $4 endpoint. */
export const RECORD = `
record_engine() {
  if [ ! -e "$2/engine" ]; then
    [ ! -e "$2/marker" ] || set -- "$1" "$2" rootful -
    printf '%s %s\\n' "$3" "$4" >"$2/engine.new" && mv -f "$2/engine.new" "$2/engine" || return 1
  fi
  engine_of "$2"
  if [ ! -e "$1/engines" ]; then
    for old in "$1"/stacks/* "$1"/snapshots/*; do
      [ ! -e "$old/marker" ] || [ -e "$old/engine" ] || { echo 'rootful -' >>"$1/engines"; break; }
    done
  fi
  grep -qxF "$engine_kind $engine_at" "$1/engines" 2>/dev/null || printf '%s %s\\n' "$engine_kind" "$engine_at" >>"$1/engines"
}
`;

/** Finds the sockets at which a rootless engine of the ssh user would listen → facts of each, as JSON. */
export const FIND_ROOTLESS = `
seen=
for socket in "\${XDG_RUNTIME_DIR:-/nowhere}/docker.sock" "/run/user/$(id -u)/docker.sock" "$HOME/.docker/run/docker.sock" "\${DOCKER_HOST#unix://}"; do
  case $socket in ''|*[!A-Za-z0-9/._-]*) continue;; esac
  case " $seen " in *" $socket "*) continue;; esac
  seen="$seen $socket"
  [ -S "$socket" ] || continue
  said=$(env -u DOCKER_CONTEXT -u DOCKER_TLS_VERIFY DOCKER_HOST="unix://$socket" docker info --format '{{json .}}' 2>&1) || { echo "silent unix://$socket"; continue; }
  printf 'engine unix://%s %s\\n' "$socket" "$said"
done
exit 0
`;

/**
 * $1 root, $2 endpoint, $3 agent, $4 image of the gateway: starts a container with only the agent, below a directory of the ssh
 * user. The socket that the agent makes there belongs to the ssh user only if the engine's root is that user, and not root of the
 * host.
 */
export const PROVE = `
${ENGINE}
[ "$(id -u)" != 0 ] || { echo 'the login is root of the host' >&2; exit 1; }
use_engine rootless "$2"
umask 077
name=sandboxer-proof-$$; place=$1/$name
mkdir -p "$place" || exit 73
trap 'docker rm -f "$name" >/dev/null 2>&1; as_owner rm -rf "$place"' EXIT
if ! docker image inspect "$4" >/dev/null 2>&1; then
  tar -C "\${3%/*}" -cf - "\${3##*/}" | docker import --change "ENTRYPOINT [\\"/\${3##*/}\\"]" - "$4" >/dev/null || exit 75
fi
docker run -d --rm --name "$name" --network none --read-only --cap-drop ALL --security-opt no-new-privileges:true --volume "$place:/place" "$4" --listen /place/agent --cwd / >/dev/null </dev/null || exit 75
tries=0
while [ ! -S "$place/agent" ]; do tries=$((tries + 1)); [ $tries -le 50 ] || { echo 'the program of the container did not start' >&2; exit 75; }; sleep 0.1; done
[ -O "$place/agent" ] || { echo 'root of its containers is not our user' >&2; exit 1; }
docker exec "$name" "/\${3##*/}" --version >/dev/null </dev/null || exit 75
docker pause "$name" >/dev/null && docker unpause "$name" >/dev/null || { echo 'it cannot pause a container' >&2; exit 1; }
docker rm -f "$name" >/dev/null || exit 75
mkdir -p "$HOME/.sandboxer" && printf '%s\\n' "$2" >"$HOME/.sandboxer/rootless-engine"
echo proven
`;

/** $1 directory of a stack: exits with 0 while its engine answers. */
export const ANSWERS = `
${ENGINE}
engine_of "$1"
docker version --format '{{.Server.Version}}'
`;
