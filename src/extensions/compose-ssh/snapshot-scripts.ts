/**
 * What is kept of a stack lies on its host, in a directory of its own: `tree` and `binds`, each volume as an archive, and
 * an image of each service under a name that begins with the given prefix: as its container is, or, where that has a
 * secret among its variables, the one it was made from. Volumes are read and filled through the
 * engine, so that nobody needs to be root.
 */
import { ENLIST, NETWORKS } from './remote-scripts.ts';

/** $1 root, $2 project, $3 directory, $4 prefix of images, $5 whose it is, then variables that are secrets → images and kilobytes. */
export const CAPTURE = `
stack=$1/stacks/$2; key=$2; target=$3; prefix=$4; marker=$5; shift 5
[ -e "$stack/marker" ] || exit 76
told() { cat "$target/images"; echo "size $(du -sk "$target" | cut -f1)"; }
[ -e "$target/done" ] && { told; exit 0; }
# An image that is made of a container remembers its variables for ever.
knows_secret() { for name; do docker inspect --format '{{range .Config.Env}}{{println .}}{{end}}' "$id" </dev/null | grep -q "^$name=" && return; done; return 1; }
umask 077
rm -rf "$target"; mkdir -p "$target/volumes" && printf '%s\\n' "$marker" >"$target/marker" || exit 73
: >"$target/images"
ids=$(docker ps -aq --no-trunc --filter "label=com.docker.compose.project=$key") || exit 75
running=$(docker ps -q --no-trunc --filter "label=com.docker.compose.project=$key" --filter status=running) || exit 75
trap '[ -z "$running" ] || docker unpause $running >/dev/null 2>&1' EXIT
[ -z "$running" ] || docker pause $running >/dev/null || exit 75
docker inspect --type container --format 'container\t{{.Id}}\t{{index .Config.Labels "io.sandboxer.service"}}\t{{index .Config.Labels "com.docker.compose.container-number"}}{{println}}{{$id := .Id}}{{$labels := .Config.Labels}}{{range .Mounts}}{{if eq .Type "volume"}}volume\t{{$id}}\t{{index $labels "io.sandboxer.service"}}\t{{index $labels "com.docker.compose.container-number"}}\t{{.Name}}\t{{.Destination}}{{println}}{{end}}{{end}}' $ids >"$target/containers" || exit 75
seen=' '; count=0
while IFS='\t' read -r what id service number name destination; do
  [ "$service" = sandboxer-gateway ] && continue
  case $what in
    container)
      [ "$number" = 1 ] || continue
      tag=$prefix$(printf %s "$service" | tr A-Z a-z)
      if knows_secret "$@"; then
        image=$(docker inspect --format '{{.Image}}' "$id" </dev/null) && docker tag "$image" "$tag" || exit 75
      else image=$(docker commit --pause=false "$id" "$tag" </dev/null) || exit 75; fi
      printf 'image %s %s\\n' "$service" "$image" >>"$target/images";;
    volume)
      case $seen in *" $name "*) continue;; esac
      seen="$seen$name "; count=$((count + 1))
      docker cp "$id:$destination/." - </dev/null >"$target/volumes/$count.tar" || exit 75
      printf '%s\\t%s\\t%s\\t%s\\n' "$count" "$service" "$number" "$destination" >>"$target/volumes/index";;
  esac
done <"$target/containers"
for part in tree binds; do
  if [ -e "$stack/$part" ]; then cp -a "$stack/$part" "$target/$part" || exit 74; fi
done
: >"$target/done"
told
`;

/** $1 directory → the tree in it as tar: what is neither file nor directory nor link is nothing a stack is read from. */
export const SEED_TREE = `
[ -e "$1/done" ] || exit 76
[ -d "$1/tree" ] || exit 0
cd "$1/tree" && find . \\( -type f -o -type d -o -type l \\) -print0 | tar --null --no-recursion --hard-dereference -cf - -T -
`;

/** $1 root, $2 project, $3 marker → \`already\` with the handle, if it is up. */
export const MARK = `
stack=$1/stacks/$2
umask 077
[ -e "$stack/up" ] && { echo already; cat "$stack/handle.json"; exit 0; }
mkdir -p "$stack" && printf '%s\\n' "$3" >"$stack/marker.new" && mv -f "$stack/marker.new" "$stack/marker" || exit 73
`;

/** $1 root, $2 project, $3 marker, $4 directory of what was kept, then service and image in turn → what networks take. */
export const PLANT = `
stack=$1/stacks/$2; project=$2; seed=$4
[ -e "$seed/done" ] || exit 76
${MARK}
shift 4
${ENLIST}
for part in tree binds; do
  if [ -e "$seed/$part" ] && [ ! -e "$stack/$part" ]; then
    cp -a "$seed/$part" "$stack/$part.new" && mv "$stack/$part.new" "$stack/$part" || exit 74
  fi
done
mkdir -p "$stack/tree" || exit 74
while [ $# -ge 2 ]; do
  docker tag "$2" "sandboxer-$project-$(printf %s "$1" | tr A-Z a-z)" || exit 77
  shift 2
done
printf '%s\\n' "$seed" >"$stack/seed" || exit 74
${NETWORKS}
`;

/** $1 directory, $2 prefix of images. */
export const FORGET = `
rm -f "$1/done"
names=$(docker image ls --format '{{.Repository}}:{{.Tag}}' --filter "reference=$2*") || exit 75
[ -z "$names" ] || docker rmi $names >/dev/null || exit 75
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
