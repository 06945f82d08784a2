import type { AttemptClass } from './attempt.ts';
import { attempt } from './attempt.ts';

const [BIND, REMOUNT, MOVE, SHARED, READ_ONLY] = [4096, 32, 8192, 1 << 20, 1];
const TYPES =
  'tmpfs proc sysfs devpts mqueue overlay cgroup cgroup2 devtmpfs debugfs tracefs securityfs bpf configfs efivarfs binfmt_misc fuse ramfs hugetlbfs nfs ext4 squashfs';

/** To the machine, whose module of a file system would be loaded, or to the attempts that follow. */
const HARM = { withoutWall: 'would do harm' } as const;

export const mounts: AttemptClass = {
  title: 'Mounts',
  why: 'a file system of the host, or a writable copy of one that is shown read-only',
  policy: 'held',
  attempts: [
    ...TYPES.split(' ').map((type) =>
      attempt(`mount: ${type}`, `call mount @none @/mnt @${type} 0 0`, {}, HARM),
    ),
    attempt('mount: / bound elsewhere', `call mount @/ @/mnt 0 ${BIND}`),
    attempt('mount: / bound with all below', `call mount @/ @/mnt 0 ${BIND + 16384}`),
    attempt('mount: the root of the first process', `call mount @/proc/1/root @/mnt 0 ${BIND}`),
    attempt('mount: /usr made writable', `call mount 0 @/usr 0 ${REMOUNT + BIND}`),
    attempt('mount: /proc/sys made writable', `call mount 0 @/proc/sys 0 ${REMOUNT + BIND}`),
    attempt('mount: /proc made writable', `call mount 0 @/proc 0 ${REMOUNT + BIND}`),
    attempt('mount: /sys made writable', `call mount 0 @/sys 0 ${REMOUNT + BIND}`),
    attempt('mount: / made writable', `call mount 0 @/ 0 ${REMOUNT + BIND}`),
    attempt('mount: / made read-only', `call mount 0 @/ 0 ${REMOUNT + BIND + READ_ONLY}`, {}, HARM),
    attempt('mount: / shared with others', `call mount 0 @/ 0 ${SHARED}`),
    attempt('mount: /proc moved', `call mount @/proc @/mnt 0 ${MOVE}`, {}, HARM),
    ...['/proc/kcore', '/proc/sys', '/proc/keys', '/usr', '/sys', '/dev', '/'].map((path) =>
      attempt(`umount: ${path}`, `call umount2 @${path} 0`, {}, HARM),
    ),
    attempt('umount: /usr, detached', 'call umount2 @/usr 2', {}, HARM),
    attempt('fsopen', 'call fsopen @tmpfs 0', { policy: 'open' }),
    attempt('fsopen: overlay', 'call fsopen @overlay 0', { policy: 'open' }),
    attempt('fsconfig', 'call fsconfig -1 0 @x 0 0', { policy: 'open' }),
    attempt('fsmount', 'call fsmount -1 0 0', { policy: 'open' }),
    attempt('fspick', 'call fspick -100 @/ 0', { policy: 'open' }),
    attempt('open_tree: a copy of /', 'call open_tree -100 @/ 1', { policy: 'open' }),
    attempt('open_tree: without a copy', 'call open_tree -100 @/ 0', { policy: 'open' }),
    attempt('open_tree_attr', 'call open_tree_attr -100 @/ 1 & 32', { policy: 'open' }),
    attempt('move_mount', 'call move_mount -1 @ -1 @/mnt 0', { policy: 'open' }),
    attempt('mount_setattr', 'call mount_setattr -1 @ 0 & 32', { policy: 'open' }),
    attempt('statmount', 'call statmount & & 4096 0', { policy: 'open' }),
    attempt('listmount', 'call listmount & & 16 0', { policy: 'open' }),
    attempt('pivot_root', 'call pivot_root @/tmp @/tmp'),
    attempt('chroot: the root of the first process', 'call chroot @/proc/1/root'),
    attempt('quotactl', 'call quotactl 0x80000500 @/dev/vda 0 &', { policy: 'open' }),
    attempt('swapon', 'call swapon @/tmp/none 0'),
    attempt('swapoff', 'call swapoff @/tmp/none'),
  ],
};
