#!/bin/sh
# ext.local in a virtual machine with Debian's own kernel and systemd: control groups of version 2 alone, or of version 1
# alone, which the machine of a developer seldom has. Needs root, and of Debian: mmdebstrap qemu-system-x86 e2fsprogs
# openssh-client. Emulated, hence slow: half an hour for everything.
#
#   tests/vm/run.sh [--suite bookworm|trixie] [--layout v2|v1] [MODE…]
#   tests/vm/run.sh … -- COMMAND…    runs this instead, as root, in the checkout
#
# Modes: root, delegated (a user below their own service manager), login (a user who is not); all of them where none is named.
# SANDBOXER_VM_DIR (.build/vm) keeps the images, SANDBOXER_VM_ACCEL (tcg,thread=multi) is another accelerator.
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
place=${SANDBOXER_VM_DIR:-$root/.build/vm}
suite=bookworm
layout=v2
modes=
while [ $# -gt 0 ]; do
  case $1 in
    --suite) suite=$2; shift 2 ;;
    --layout) layout=$2; shift 2 ;;
    --) shift; break ;;
    root | delegated | login) modes="$modes $1"; shift ;;
    *) echo "vm: what is $1? See the first lines of $0" >&2; exit 2 ;;
  esac
done
case $layout in
  v2) append= ;;
  v1) append='systemd.unified_cgroup_hierarchy=0 systemd.legacy_systemd_cgroup_controller=1 SYSTEMD_CGROUP_ENABLE_LEGACY_FORCE=1' ;;
  *) echo "vm: the layouts are v1 and v2" >&2; exit 2 ;;
esac
for program in mmdebstrap mke2fs qemu-system-x86_64 ssh-keygen ssh; do
  command -v "$program" >/dev/null || { echo "vm: no $program: apt-get install mmdebstrap qemu-system-x86 e2fsprogs openssh-client" >&2; exit 1; }
done

image=$place/$suite
packages=linux-image-cloud-amd64,initramfs-tools,systemd-sysv,dbus-user-session,libpam-systemd,openssh-server,crun,uidmap
packages=$packages,python3,git,gcc,libc6-dev,busybox-static,sudo,iproute2,netbase,ca-certificates,procps,kmod,udev

build_image() {
  tree=$image.tree
  rm -rf "$tree"
  mmdebstrap --quiet --variant=minbase --include="$packages" "$suite" "$tree"
  cp "$tree"/boot/vmlinuz-* "$image.kernel"
  cp "$tree"/boot/initrd.img-* "$image.initrd"
  [ -e "$place/key" ] || ssh-keygen -q -t ed25519 -N '' -f "$place/key"
  chroot "$tree" useradd -m -s /bin/bash plain
  for home in root home/plain; do
    mkdir -p "$tree/$home/.ssh"
    cp "$place/key.pub" "$tree/$home/.ssh/authorized_keys"
  done
  chroot "$tree" chown -R plain: /home/plain
  mkdir -p "$tree/var/lib/systemd/linger" "$tree/opt/sandboxer"
  : >"$tree/var/lib/systemd/linger/plain"
  printf '[Match]\nName=en*\n[Network]\nDHCP=yes\n' >"$tree/etc/systemd/network/20-all.network"
  chroot "$tree" systemctl --quiet enable systemd-networkd
  chroot "$tree" systemctl --quiet mask apt-daily.timer apt-daily-upgrade.timer systemd-networkd-wait-online
  mke2fs -q -F -t ext4 -d "$tree" "$image.new" 6G
  mv "$image.new" "$image.img"
  rm -rf "$tree"
}

mkdir -p "$place"
[ -e "$image.img" ] || build_image

port=$((20000 + $$ % 20000))
qemu-system-x86_64 -accel "${SANDBOXER_VM_ACCEL:-tcg,thread=multi}" -cpu max -smp 2 -m 4096 -display none -monitor none \
  -no-reboot -serial "file:$image.console" -kernel "$image.kernel" -initrd "$image.initrd" \
  -append "root=/dev/vda rw console=ttyS0 quiet $append" \
  -drive "file=$image.img,if=virtio,format=raw,snapshot=on" -device virtio-rng-pci -device virtio-net-pci,netdev=n \
  -netdev "user,id=n,restrict=on,hostfwd=tcp:127.0.0.1:$port-:22" &
machine=$!
trap 'kill "$machine" 2>/dev/null; wait "$machine" 2>/dev/null || true' EXIT
trap 'exit 130' INT TERM

inside() {
  who=$1
  shift
  ssh -q -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o ConnectTimeout=10 -i "$place/key" -p "$port" \
    "$who@127.0.0.1" "$@"
}

tries=0
until inside root true; do
  tries=$((tries + 1))
  kill -0 "$machine" 2>/dev/null && [ $tries -lt 100 ] || { echo "vm: it does not come up: see $image.console" >&2; exit 1; }
  sleep 3
done
tar -C "$root" --exclude=./.build --exclude=./dist --exclude=./.git -cf - . |
  inside root 'tar -C /opt/sandboxer --no-same-owner -xf - && chmod -R a+rX /opt/sandboxer'
# shellcheck disable=SC2016 # is for the shell inside
inside root 'echo "$(uname -r), systemd $(systemctl --version | sed -n "1s/systemd \([0-9]*\).*/\1/p"), $(crun --version | head -n 1), cgroups: $(stat -fc %T /sys/fs/cgroup)"'

suite_inside='cd /opt/sandboxer && PATH=$PWD/node_modules/.bin:$PATH node tests/vm/conform.ts'
if [ $# -gt 0 ]; then
  inside root "cd /opt/sandboxer && export PATH=\$PWD/node_modules/.bin:\$PATH && $*"
  exit
fi
failed=0
for mode in ${modes:-root delegated login}; do
  echo "== $suite, $layout, $mode"
  case $mode in
    root) inside root "$suite_inside" || failed=1 ;;
    delegated) inside plain "systemd-run --user -p Delegate=yes --wait --pipe -q sh -c '$suite_inside'" || failed=1 ;;
    login) inside plain "$suite_inside" || failed=1 ;;
  esac
done
exit $failed
