/**
 * What a machine says of itself, as `key value` lines, for `/bin/sh`. Its one argument is our owner id. What is not
 * there is left out: every line may be missing. It changes nothing.
 */
export const hostFactsScript = String.raw`
say() { [ -n "$2" ] && printf '%s %s\n' "$1" "$2"; }
say hostname "$(uname -n)"
say kernel "$(uname -sr)"
say machine "$(uname -m)"
say user "$(id -un)"
say uid "$(id -u)"
say cpus "$(getconf _NPROCESSORS_ONLN 2>/dev/null)"
say load "$(cut -d' ' -f1-3 /proc/loadavg 2>/dev/null)"
say uptime_seconds "$(cut -d. -f1 /proc/uptime 2>/dev/null)"
say memory_total_kb "$(sed -n 's/^MemTotal: *\([0-9]*\).*/\1/p' /proc/meminfo 2>/dev/null)"
say memory_available_kb "$(sed -n 's/^MemAvailable: *\([0-9]*\).*/\1/p' /proc/meminfo 2>/dev/null)"
say disk_kb "$(df -Pk . 2>/dev/null | awk 'NR == 2 { print $2, $4 }')"
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
  docker ps -a --format '{{.ID}} {{.State}} {{.Label "io.sandboxer.owner"}}' 2>/dev/null |
    awk -v o="$1" '{ if ($3 == o) ours++; else if ($3 != "") others++; else foreign++ }
      END { if (ours) print "containers_ours " ours; if (others) print "containers_other_owner " others;
            if (foreign) print "containers_not_ours " foreign }'
fi
`;
