import type { AttemptClass } from './attempt.ts';
import { attempt, each } from './attempt.ts';

const DEVICES = `/dev/mem /dev/kmem /dev/port /dev/kvm /dev/fuse /dev/cuse /dev/net/tun /dev/loop-control /dev/loop0
  /dev/sda /dev/nvme0n1 /dev/nbd0 /dev/mapper/control /dev/btrfs-control /dev/vhost-net /dev/vhost-vsock /dev/vsock
  /dev/userfaultfd /dev/kmsg /dev/console /dev/tty0 /dev/tty1 /dev/ttyS0 /dev/vcs /dev/input/event0 /dev/uinput /dev/uhid
  /dev/dri/card0 /dev/dri/renderD128 /dev/snd/timer /dev/rtc0 /dev/hpet /dev/cpu/0/msr /dev/cpu/0/cpuid /dev/autofs /dev/ppp
  /dev/udmabuf /dev/dma_heap/system /dev/vfio/vfio /dev/tpm0 /dev/tpmrm0 /dev/hwrng /dev/nvram /dev/sg0
  /dev/rfkill /dev/vga_arbiter /dev/binder /dev/iommu /dev/sgx_enclave /dev/sev /dev/mcelog /dev/ptp0`;

/** N_PPP, N_HDLC, N_SLCAN, N_GSM: their modules have had many faults. */
const DISCIPLINES = { ppp: 3, hdlc: 13, slcan: 17, gsm: 21, 'never used': 29 };

/** The machine may be one that has no right to its own disk. */
const REFUSED = { withoutWall: 'is refused' } as const;
const HARM = { withoutWall: 'would do harm' } as const;

export const devices: AttemptClass = {
  title: 'Devices',
  why: 'disks, memory and hardware of the machine, and drivers that are tested with one user in mind',
  policy: 'held',
  attempts: [
    ...each('open', DEVICES, { policy: 'open' }),
    attempt('open /dev/vda', 'open /dev/vda', { policy: 'open' }, REFUSED),
    attempt('open /dev/snapshot', 'open /dev/snapshot', { policy: 'open' }, HARM),
    ...each('write', '/dev/kmsg /dev/mem /dev/console'),
    attempt('write /dev/vda', 'write /dev/vda', {}, REFUSED),
    attempt('mknod: a disk', 'call mknodat -100 @/tmp/attempt-block 0060600 0xfe00'),
    attempt('mknod: memory', 'call mknodat -100 @/tmp/attempt-memory 0020600 0x101'),
    attempt('mknod: /dev/kmsg', 'call mknodat -100 @/tmp/attempt-log 0020600 0x10b'),
    attempt('chmod: /dev/null', 'call chmod @/dev/null 0600', { docker: 'held' }, HARM),
    attempt('chown: /dev/null', 'call chown @/dev/null 0 0', {}, HARM),
    attempt('type into a terminal', 'push-input', { policy: 'open', docker: 'open' }, REFUSED),
    ...Object.entries(DISCIPLINES).map(([name, number]) =>
      attempt(
        `line discipline of a terminal: ${name}`,
        `line-discipline ${number}`,
        { policy: 'open', docker: 'open' },
        HARM,
      ),
    ),
    attempt(
      'line discipline of a terminal: behind bits that the kernel drops',
      'wide-line-discipline 13',
      { policy: 'open', docker: 'open' },
      HARM,
    ),
    attempt('a terminal of its own', 'own-terminal', 'works'),
    attempt('zeros', 'read /dev/zero', 'works'),
    attempt('the random numbers', 'read /dev/urandom', 'works'),
    ...each('write', '/dev/random', 'own'),
  ],
};
