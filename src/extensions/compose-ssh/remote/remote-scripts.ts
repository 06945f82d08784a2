/**
 * Scripts for a host: constant programs of a POSIX shell, with parameters as arguments and everything else on standard input.
 * Their exit codes: 73 a directory or record cannot be made, 74 files cannot be unpacked or written, 75 the engine failed, 76 the
 * stack is gone (`GONE`), 77 the agent did not start, 79 a base image is refused.
 */
import { ENGINE, RECORD } from './engine-scripts.ts';

/**
 * Records the process group of a command, so that teardown can end it: a command that outlived its connection must not go on
 * making objects.
 */
export const ENLIST = 'read -r _ _ _ _ group _ </proc/$$/stat; echo "$group" >>"$stack/groups"';

/** Lists the networks of the engine and the routes of the host. */
export const NETWORKS = `
docker network ls -q --no-trunc | xargs -r docker network inspect --format '{{range .IPAM.Config}}{{println "subnet" .Subnet}}{{end}}' || exit 75
echo routes
cat /proc/net/route
`;

const INSPECT = [
  'ids=$(docker ps -aq --no-trunc --filter "label=com.docker.compose.project=$key")',
  `[ -z "$ids" ] || docker inspect --type container --format '{"id":{{json .Id}},"labels":{{json .Config.Labels}},"state":{{json .State}},"ports":{{json .NetworkSettings.Ports}},"user":{{json .Config.User}},"cwd":{{json .Config.WorkingDir}},"image":{{json .Image}},"networks":{{json .NetworkSettings.Networks}}}' $ids`,
].join('\n');

/** $1 directory → facts of the host, one in a line. */
export const FACTS = `
case $1 in /*) root=$1;; *) root=$HOME/$1;; esac
umask 077
mkdir -p "$root/stacks" || exit 73
shm=/dev/shm/sandboxer-$(id -u)
{ mkdir -p "$shm" && [ -O "$shm" ] && chmod 700 "$shm"; } 2>/dev/null || { shm=$root/secrets; mkdir -p "$shm"; }
echo "root $root"
echo "secrets $shm"
if said=$(docker compose version 2>/dev/null); then echo "compose v2"; echo "version $(echo $said)"
elif command -v docker-compose >/dev/null 2>&1; then echo "compose v1"; fi
docker version --format 'engine {{.Server.Version}}'
`;

/**
 * $1 root, $2 project, $3 marker, $4 kind and $5 endpoint of the engine; the tree as tar → `already` with the handle, or the
 * engine and the taken networks.
 */
export const UPLOAD = `
${ENGINE}${RECORD}
stack=$1/stacks/$2
umask 077
mkdir -p "$stack" || exit 73
[ -e "$stack/up" ] && { echo already; cat "$stack/handle.json"; exit 0; }
record_engine "$1" "$stack" "$4" "$5" || exit 73
printf '%s\\n' "$3" >"$stack/marker.new" && mv -f "$stack/marker.new" "$stack/marker" || exit 73
${ENLIST}
umask 022
mkdir -p "$stack/tree" && tar -xpf - -C "$stack/tree" --no-same-owner || exit 74
echo "engine $engine_kind $engine_at"
${NETWORKS}`;

/**
 * Fills the volumes of a stack that is made from a snapshot: its containers exist, none has run. Each archive goes to the volume
 * of the container of the same service and number. Snapshots of older versions have an `index` of lines.
 */
const FILL = `
if [ -e "$stack/seed" ]; then
  read -r seed <"$stack/seed"
  compose up --no-start 1>&2 </dev/null || exit 75
  list=$seed/volumes/list
  if [ ! -e "$list" ] && [ -e "$seed/volumes/index" ]; then
    list=$stack/volumes-list; tr '\\t\\n' '\\0\\0' <"$seed/volumes/index" >"$list" || exit 74
  fi
  if [ -e "$list" ]; then
    export key seed
    xargs -0 -r -n 4 sh -c '
id=$(docker ps -aq --no-trunc --filter "label=com.docker.compose.project=$key" --filter "label=io.sandboxer.service=$2" --filter "label=com.docker.compose.container-number=$3") || exit 255
[ -n "$id" ] && docker cp - "$id:$4" <"$seed/volumes/$1.tar" || exit 255
' sh <"$list" || exit 75
  fi
  as_owner rm -rf "$stack/seed" "$stack/fork" "$stack/volumes-list"
fi
`;

/**
 * Makes the places of sources, in the directory of the stack: words of three from \`places\`, each ended by NUL. Runs once,
 * before any container: later a container could have put links where the sources were.
 */
const PLACE = `
if [ ! -e "$stack/placed" ]; then
  cd "$stack" && mkdir -p binds builds grants || exit 74
  xargs -0 -r -n 3 sh -c '
place() { [ -e "$2" ] || { rm -rf "$2.new" && "$3" "$1" "$2.new" && mv "$2.new" "$2"; }; }
linked() { cp -al "$1" "$2" 2>/dev/null || { rm -rf "$2" && cp -a "$1" "$2"; }; }
copied() { cp -a "$1" "$2"; }
case $1 in
  directory) mkdir -p "$2";;
  link) place "$2" "$3" linked;;
  copy) place "$2" "$3" copied;;
  *) exit 255;;
esac || exit 255
' sh <places && : >placed || exit 74
fi
`;

/**
 * Refuses base images with an `ONBUILD` that names an image: the builder of compose v1 finds images by the beginning of their
 * ids, also for instructions of a base image. Names with a "/" are never those of stages.
 */
const BASES = `
if [ "$generation" = v1 ] && [ -s base-images ] && [ ! -e judged-images ]; then
  while read -r image; do
    docker image inspect "$image" >/dev/null 2>&1 || case $image in */*) docker pull -q "$image" </dev/null >/dev/null 2>&1;; esac || continue
    if docker image inspect --format '{{range .Config.OnBuild}}{{println .}}{{end}}' "$image" 2>/dev/null </dev/null | grep -qi 'from'; then
      echo "$image brings an instruction (ONBUILD) that names another image" >&2; exit 79
    fi
  done <base-images
  : >judged-images
fi
`;

/**
 * $1 root, $2 secrets, $3 project, $4 generation of compose, $5 agent and $6 image of the gateway, if it has one; lines of
 * secrets (those by environment under the backend's own names), then generated files as tar → containers.
 */
export const UP = `
${ENGINE}
stack=$1/stacks/$3; secrets=$2/$3; key=$3; generation=$4
[ -e "$stack/marker" ] || exit 76
engine_of "$stack"
${ENLIST}
umask 077
while IFS=' ' read -r kind name value; do
  case $kind in
    file) mkdir -p "$secrets" && printf %s "$value" | base64 -d >"$secrets/$name" && chmod 444 "$secrets/$name" || exit 73;;
    env) value=$(printf %s "$value" | base64 -d; echo x); export "$name=\${value%x}";;
    *) break;;
  esac
done
tar -xpf - -C "$stack" --no-same-owner || exit 74
umask 022
${PLACE}if [ $# -ge 6 ] && ! docker image inspect "$6" >/dev/null 2>&1; then
  tar -C "\${5%/*}" -cf - "\${5##*/}" | docker import --change "ENTRYPOINT [\\"/\${5##*/}\\"]" - "$6" >/dev/null || exit 75
fi
cd "$stack" && : >no-variables || exit 76
export COMPOSE_HTTP_TIMEOUT=300
if [ "$generation" = v2 ]; then program='docker compose'; else program=docker-compose; fi
compose() { $program -p "$key" --project-directory "$stack" --env-file no-variables -f stack.yml "$@"; }
if [ -e watched-images ] && [ ! -e pulled-images ]; then
  while read -r image; do docker image inspect "$image" >/dev/null 2>&1 || echo "$image"; done <watched-images >pulled-images.new
  mv pulled-images.new pulled-images || exit 74
fi
${BASES}${FILL}
compose up -d --quiet-pull 1>&2 </dev/null
status=$?
[ -e "$stack/marker" ] || exit 76
[ $status = 0 ] && : >"$stack/up"
${INSPECT}
exit $status
`;

/** $1 root, $2 project → containers. */
export const STATE = `
${ENGINE}
key=$2
[ -e "$1/stacks/$2/marker" ] || exit 76
engine_of "$1/stacks/$2"
${INSPECT}
`;

/** $1 root, $2 secrets, $3 project, $4 owner, $5 whether built images stay → remaining objects. */
export const DOWN = `
${ENGINE}
stack=$1/stacks/$3; secrets=$2/$3; key=$3; owner=$4; keep=$5
mine="label=com.docker.compose.project=$key"; ours="label=io.sandboxer.owner=$owner"
engine_of "$stack"
if [ -e "$stack/marker" ] || [ -e "$stack/engine" ]; then all="$engine_kind@$engine_at"; else all=$(engines "$1"); fi
if [ -e "$stack/groups" ]; then
  read -r _ _ _ _ self _ </proc/$$/stat
  while read -r group; do
    [ "$group" = "$self" ] || case $(cat "/proc/$group/cmdline" 2>/dev/null | tr '\\0' ' ') in *"$key"*) kill -KILL -- "-$group" 2>/dev/null && busy=1;; esac
  done <"$stack/groups"
fi
rm -f "$stack/up"
found() { docker ps -aq --no-trunc --filter "$mine" --filter "$ours"; }
nets() { docker network ls -q --filter "$mine" --filter "$ours"; }
vols() { docker volume ls -q --filter "$mine" --filter "$ours"; }
# Ends with 1 where the engine still has something.
clear_engine() {
  tries=0
  while :; do
    ids=$(found) || exit 75
    if [ -n "$ids" ]; then
      for id in $ids; do echo "removed container $id"; done
      docker rm -f -v $ids >/dev/null 2>&1
    fi
    ids=$(nets) || exit 75
    [ -z "$ids" ] || docker network rm $ids 2>/dev/null | sed 's/^/removed network /'
    ids=$(vols) || exit 75
    [ -z "$ids" ] || docker volume rm -f $ids 2>/dev/null | sed 's/^/removed volume /'
    tries=$((tries + 1))
    [ -n "\${busy:-}" ] && { busy=; sleep 1; continue; }
    containers=$(found) && networks=$(nets) && volumes=$(vols) || exit 75
    [ -z "$containers$networks$volumes" ] && break
    [ $tries -ge 5 ] && break
    sleep 1
  done
  # Stacks of older versions have a base.yml.
  file=$stack/stack.yml; [ -e "$file" ] || file=$stack/base.yml
  if [ "$keep" != keep ] && { [ ! -e "$file" ] || grep -q "sandboxer-$key-" "$file"; }; then
    # By name: the same image may have names that are not ours.
    images=$(docker image ls --format '{{.Repository}}:{{.Tag}}' --filter "reference=sandboxer-$key-*") || exit 75
    [ -z "$images" ] || docker rmi $images >/dev/null 2>&1
  fi
  # Without force: what another container uses stays.
  if [ -s "$stack/pulled-images" ]; then
    while read -r image; do docker rmi "$image" </dev/null 2>/dev/null | sed -n 's/^Untagged: /removed image /p'; done <"$stack/pulled-images"
  fi
  for id in $containers; do echo "left container $id"; done
  for id in $networks; do echo "left network $id"; done
  for id in $volumes; do echo "left volume $id"; done
  [ -z "$containers$networks$volumes" ]
}
for engine in $all; do
  (use_engine "\${engine%%@*}" "\${engine#*@}"; clear_engine)
  case $? in 0) ;; 1) left=1;; *) exit 75;; esac
done
[ -n "\${left:-}" ] && exit 0
rm -rf "$secrets"
if [ -e "$stack" ]; then
  # The marker goes last: what cannot be removed now is found again.
  as_owner find "$stack" -mindepth 1 -maxdepth 1 ! -name marker ! -name engine -exec rm -rf {} + 2>/dev/null
  [ -n "$(find "$stack" -mindepth 1 -maxdepth 1 ! -name marker ! -name engine 2>/dev/null)" ] || rm -rf "$stack" 2>/dev/null
  if [ -e "$stack" ]; then echo "left directory $stack"; else echo "removed directory $stack"; fi
fi
exit 0
`;

/** $1 root → markers, directories without one, and labels of objects with this backend's marks, of any owner. */
export const MARKED = `
${ENGINE}
for marker in "$1"/stacks/*/marker; do [ -e "$marker" ] && { printf 'marker '; cat "$marker"; }; done
for stack in "$1"/stacks/*; do [ -d "$stack" ] && [ ! -e "$stack/marker" ] && echo "unmarked $stack"; done
labelled() {
  for kind in container network volume; do
    name=.Name
    case $kind in container) list='docker ps -a'; name=.Names;; *) list="docker $kind ls";; esac
    label() { echo "{{json (.Label \\"io.sandboxer.$1\\")}}"; }
    found=$($list --filter label=io.sandboxer.attempt-id --format "labels [\\"$kind\\",{{json $name}},$(label owner),$(label sandbox-uid),$(label attempt-id)]") || exit 75
    [ -z "$found" ] || printf '%s\\n' "$found"
  done
}
for engine in $(engines "$1"); do
  (use_engine "\${engine%%@*}" "\${engine#*@}"; labelled) || exit 75
done
exit 0
`;

/**
 * $1 project, $2 `pause` or `unpause`, $3 the state of the containers to change: `running`, or `paused`, $4 directory of the
 * stack. Prints nothing; exits with 0 when no container is in that state any more, with 75 when the engine does not answer, and
 * with 1 otherwise.
 */
export const FREEZE = `
${ENGINE}
engine_of "$4"
all() { docker ps -q --no-trunc --filter "label=com.docker.compose.project=$1" --filter "status=$2"; }
ids=$(all "$1" "$3") || exit 75
[ -z "$ids" ] || docker "$2" $ids >/dev/null
ids=$(all "$1" "$3") || exit 75
[ -z "$ids" ]
`;

/**
 * $1 project, $2 service, $3 lines or `all`, $4 `follow` or `end`, $5 directory of the stack → output of its containers. Ends
 * with its input: without that, the loss of the reader of a silent service would not be noticed.
 */
export const LOG = `
${ENGINE}
set -f
engine_of "$5"
ids=$(docker ps -aq --no-trunc --filter "label=com.docker.compose.project=$1" --filter "label=io.sandboxer.service=$2") || exit 75
follow=; [ "$4" = follow ] && follow=--follow
exec 3<&0
readers=
for id in $ids; do docker logs $follow --tail "$3" "$id" </dev/null 3<&- & readers="$readers $!"; done
{ cat <&3 >/dev/null; kill $readers 2>/dev/null; } 2>/dev/null &
watch=$!
exec 3<&-
status=0
for reader in $readers; do wait "$reader" || status=$?; done
kill "$watch" 2>/dev/null
exit "$status"
`;

/**
 * $1 container, $2 user of the agent (empty: the container’s own), $3 directory, $4 stack, $5 name for a new socket.
 *
 * A socket of a program in the container, at whatever path, is not taken for the agent's: the listening process must be the one
 * that this script started, whose pid and start time are in a file that no container sees.
 */
export const AGENT = `
${ENGINE}
engine_of "$4"
agent=/.sandboxer/agent; known=$4/agents/$1
relay() {
  read -r door pid since <"$known" 2>/dev/null || return 1
  if [ -n "$user" ]; then $first docker exec -i -u "$user" "$1" $agent --relay "$door" --peer "$pid:$since"
  else $first docker exec -i "$1" $agent --relay "$door" --peer "$pid:$since"; fi
}
user=$2; first=
[ -e "$4/marker" ] || exit 76
if ! relay "$1" </dev/null >/dev/null 2>&1; then
  door=/dev/shm/.sandboxer-agent-$5
  if [ -n "$user" ]; then said=$(docker exec -u "$user" "$1" $agent --listen $door --daemon --user "$user" --cwd "$3" </dev/null)
  else said=$(docker exec "$1" $agent --listen $door --daemon --cwd "$3" </dev/null); fi
  umask 077
  case $said in "agent "*" "*) ;; *) exit 77;; esac
  mkdir -p "$4/agents" && echo "$door \${said#agent }" >"$known.new" && mv "$known.new" "$known" || exit 74
fi
first=exec
relay "$1"
`;
