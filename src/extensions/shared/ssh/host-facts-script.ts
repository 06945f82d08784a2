/** Script for `/bin/sh` that prints the resources of a machine and their use, as `key value` lines. It changes nothing. */
export const hostFiguresScript = String.raw`
say() { [ -n "$2" ] && printf '%s %s\n' "$1" "$2"; }
say cpus "$(getconf _NPROCESSORS_ONLN 2>/dev/null)"
say load "$(cut -d' ' -f1-3 /proc/loadavg 2>/dev/null)"
say memory_total_kb "$(sed -n 's/^MemTotal: *\([0-9]*\).*/\1/p' /proc/meminfo 2>/dev/null)"
say memory_available_kb "$(sed -n 's/^MemAvailable: *\([0-9]*\).*/\1/p' /proc/meminfo 2>/dev/null)"
say disk_kb "$(df -Pk . 2>/dev/null | awk 'NR == 2 { print $2, $4 }')"
`;

/**
 * Prints the same, and all other facts of a machine. Its one argument is the server's owner id. Any line may be missing.
 */
export const hostFactsScript = `${hostFiguresScript}
say hostname "$(uname -n)"
say kernel "$(uname -sr)"
say machine "$(uname -m)"
say user "$(id -un)"
say uid "$(id -u)"
say uptime_seconds "$(cut -d. -f1 /proc/uptime 2>/dev/null)"
say inodes "$(df -Pi . 2>/dev/null | awk 'NR == 2 { print $2, $4 }')"
say cgroup "$(stat -fc %T /sys/fs/cgroup 2>/dev/null)"
say userns "$(cat /proc/sys/user/max_user_namespaces 2>/dev/null)"
case ,$(cat /sys/kernel/security/lsm 2>/dev/null), in *,landlock,*) say landlock yes;; esac
[ -w /dev/kvm ] && say kvm yes
for p in crun runc runsc kata-runtime; do command -v $p >/dev/null 2>&1 && say runtime $p; done
command -v docker-compose >/dev/null 2>&1 && say compose "$(docker-compose version --short 2>/dev/null)"
if command -v docker >/dev/null 2>&1; then
  say docker "$(docker version --format '{{.Server.Version}}' 2>/dev/null)"
  docker compose version --short >/dev/null 2>&1 && say compose_plugin "$(docker compose version --short)"
  own() { DOCKER_HOST=$rootless DOCKER_CONTEXT= docker "$@" 2>/dev/null; }
  rootless=
  for socket in "\${XDG_RUNTIME_DIR:-/nowhere}/docker.sock" "/run/user/$(id -u)/docker.sock" "$HOME/.docker/run/docker.sock"; do
    [ -z "$rootless" ] && [ -S "$socket" ] || continue
    rootless=unix://$socket
    case $(own info --format '{{.SecurityOptions}}') in
      *name=rootless*) say docker_rootless "$(own version --format '{{.Server.Version}}')";;
      *) rootless=;;
    esac
  done
  # ext.compose-ssh writes it once a container of that engine was started.
  [ -n "$rootless" ] && [ "$(cat "$HOME/.sandboxer/rootless-engine" 2>/dev/null)" = "$rootless" ] && say rootless_engine yes
  listed='{{.Names}} {{.Image}} {{.State}} {{.Label "io.sandboxer.owner"}}'
  { docker ps -a --format "$listed" 2>/dev/null; [ -z "$rootless" ] || own ps -a --format "$listed"; } |
    awk -v o="$1" '{ whose = $4 == "" ? "not_ours" : $4 == o ? "ours" : "other_owner"; count[whose]++
        if (NR <= 100) print "container", $1, $2, $3, whose }
      END { for (whose in count) print "containers_" whose, count[whose] }'
fi
`;
