/**
 * Scripts for snapshots of stacks. A snapshot lies on its host, in a directory of its own: `tree` and `binds`, each volume as an
 * archive, and an image of each service under a name that begins with the given prefix: as its container is, or, where that has a
 * secret among its variables, the one it was made from. The engine reads and fills volumes, so that no step needs root.
 */
import { ENGINE, RECORD } from '../remote/engine-scripts.ts';
import { ENLIST, NETWORKS } from '../remote/remote-scripts.ts';

/** Ends a word in a format of \`docker inspect\`. */
const NUL = '{{"\\x00"}}';
const words = (...values: string[]) => values.map((value) => `${value}${NUL}`).join('');
const SERVICE = '{{index $labels "io.sandboxer.service"}}';
const NUMBER = '{{index $labels "com.docker.compose.container-number"}}';

/**
 * Format of containers and their volumes, seven words each. The first word is empty, or the line break that the command writes
 * after each container.
 */
const CONTAINERS = [
  '{{$id := .Id}}{{$labels := .Config.Labels}}',
  words('', 'container', '{{$id}}', SERVICE, NUMBER, '', ''),
  '{{range .Mounts}}{{if eq .Type "volume"}}',
  words('', 'volume', '{{$id}}', SERVICE, NUMBER, '{{.Name}}', '{{.Destination}}'),
  '{{end}}{{end}}',
].join('');

/** Captures the image of a container, or the content of a volume: words of CONTAINERS. */
const CAPTURE_ONE = `
[ $# -eq 7 ] || exit 0
id=$3 service=$4 number=$5 name=$6 destination=$7
[ "$service" = sandboxer-gateway ] && exit 0
# An image that is made of a container remembers its variables for ever.
knows_secret() { for secret in $secrets; do docker inspect --format "{{range .Config.Env}}{{println .}}{{end}}" "$id" </dev/null | grep -q "^$secret=" && return; done; return 1; }
case $2 in
  container)
    [ "$number" = 1 ] || exit 0
    tag=$prefix$(printf %s "$service" | tr A-Z a-z)
    if knows_secret; then
      image=$(docker inspect --format "{{.Image}}" "$id" </dev/null) && docker tag "$image" "$tag" || exit 255
    else image=$(docker commit --pause=false "$id" "$tag" </dev/null) || exit 255; fi
    echo "image $service $image" >>"$target/images";;
  volume)
    mkdir "$target/seen/$name" 2>/dev/null || exit 0
    count=$(($(ls "$target/seen" | wc -l)))
    docker cp "$id:$destination/." - </dev/null >"$target/volumes/$count.tar" || exit 255
    printf "%s\\0%s\\0%s\\0%s\\0" "$count" "$service" "$number" "$destination" >>"$target/volumes/list";;
esac
`;

/**
 * $1 root, $2 project, $3 directory, $4 prefix of images, $5 its owner, then variables that are secrets → images and kilobytes.
 */
export const CAPTURE = `
${ENGINE}
stack=$1/stacks/$2; key=$2; target=$3; prefix=$4; marker=$5; shift 5
secrets=$*
[ -e "$stack/marker" ] || exit 76
engine_of "$stack"
told() { cat "$target/images"; echo "size $(as_owner du -sk "$target" | cut -f1)"; }
[ -e "$target/done" ] && { told; exit 0; }
umask 077
as_owner rm -rf "$target"; mkdir -p "$target/volumes" "$target/seen" && printf '%s %s\\n' "$engine_kind" "$engine_at" >"$target/engine" && printf '%s\\n' "$marker" >"$target/marker" || exit 73
: >"$target/images"
ids=$(docker ps -aq --no-trunc --filter "label=com.docker.compose.project=$key") || exit 75
in_state() { docker ps -q --no-trunc --filter "label=com.docker.compose.project=$key" --filter "status=$1"; }
paused=; stopped=; tries=0
trap '[ -z "$paused" ] || docker unpause $paused >/dev/null 2>&1; [ -z "$stopped" ] || docker start $stopped >/dev/null 2>&1' EXIT
# Nothing of the stack runs while its tree is copied: not even what its restart policy starts in the meantime.
while :; do
  running=$(in_state running) && restarting=$(in_state restarting) || exit 75
  [ -z "$running$restarting" ] && break
  tries=$((tries + 1)); [ $tries -le 10 ] || exit 75
  [ -z "$running" ] || paused="$paused $(docker pause $running 2>/dev/null)"
  [ -z "$restarting" ] || stopped="$stopped $(docker stop -t 0 $restarting 2>/dev/null)"
done
docker inspect --type container --format '${CONTAINERS}' $ids >"$target/containers" || exit 75
export target prefix secrets
xargs -0 -n 7 sh -c '${CAPTURE_ONE}' sh <"$target/containers" || exit 75
for part in tree binds; do
  if [ -e "$stack/$part" ]; then as_owner cp -a "$stack/$part" "$target/$part" || exit 74; fi
done
rm -rf "$target/seen"
: >"$target/done"
told
`;

/** $1 directory → the tree in it as tar: files, directories and links only, as a stack is read from no others. */
export const SEED_TREE = `
${ENGINE}
[ -e "$1/done" ] || exit 76
engine_of "$1"
[ -d "$1/tree" ] || exit 0
cd "$1/tree" && as_owner sh -c 'find . \\( -type f -o -type d -o -type l \\) -print0 | tar --null --no-recursion --hard-dereference -cf - -T -'
`;

/** $1 root, $2 project, $3 marker, $4 directory with the record of an engine → \`already\` with the handle, if it is up. */
export const MARK = `
${ENGINE}${RECORD}
stack=$1/stacks/$2
umask 077
[ -e "$stack/up" ] && { echo already; cat "$stack/handle.json"; exit 0; }
engine_of "$4"
mkdir -p "$stack" && record_engine "$1" "$stack" "$engine_kind" "$engine_at" || exit 73
printf '%s\\n' "$3" >"$stack/marker.new" && mv -f "$stack/marker.new" "$stack/marker" || exit 73
`;

/**
 * $1 root, $2 project, $3 marker, $4 directory of the snapshot, then service and image in turn → the engine and the taken
 * networks.
 */
export const PLANT = `
stack=$1/stacks/$2; project=$2; seed=$4
[ -e "$seed/done" ] || exit 76
${MARK}
shift 4
${ENLIST}
for part in tree binds; do
  if [ -e "$seed/$part" ] && [ ! -e "$stack/$part" ]; then
    as_owner cp -a "$seed/$part" "$stack/$part.new" && mv "$stack/$part.new" "$stack/$part" || exit 74
  fi
done
mkdir -p "$stack/tree" || exit 74
while [ $# -ge 2 ]; do
  docker tag "$2" "sandboxer-$project-$(printf %s "$1" | tr A-Z a-z)" || exit 77
  shift 2
done
printf '%s\\n' "$seed" >"$stack/seed" || exit 74
echo "engine $engine_kind $engine_at"
${NETWORKS}
`;

/** $1 directory, $2 prefix of images. */
export const FORGET = `
${ENGINE}
engine_of "$1"
rm -f "$1/done"
names=$(docker image ls --format '{{.Repository}}:{{.Tag}}' --filter "reference=$2*") || exit 75
[ -z "$names" ] || docker rmi $names >/dev/null || exit 75
as_owner find "$1" -mindepth 1 -maxdepth 1 ! -name marker ! -name engine -exec rm -rf {} + 2>/dev/null
rm -rf "$1"
[ ! -e "$1" ]
`;

/** $1 root → markers of snapshots, and directories without one. */
export const KEPT = `
for kept in "$1"/snapshots/*; do
  [ -d "$kept" ] || continue
  if [ -e "$kept/marker" ]; then printf 'marker '; cat "$kept/marker"; else echo "unmarked $kept"; fi
done
`;
