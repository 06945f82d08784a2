import type { Attempt, AttemptClass, Expected, Setting } from './attempt.ts';
import { attempt, BY_POLICY_FILTER, each, inContainers } from './attempt.ts';

/** What `probe --serve NAME KEY` offers; the name, key, port and process id come from where it runs. */
const OFFERED = {
  'an abstract socket': 'abstract NAME',
  'a socket by its path': 'connect /tmp/NAME.sock',
  'a port on loopback': 'tcp PORT',
  'System V memory': 'shm KEY',
  'System V messages': 'msg KEY',
  'System V semaphores': 'sem KEY',
  'a POSIX queue': 'mq /NAME',
  'a file in /dev/shm': 'read /dev/shm/NAME',
  'a file in /tmp': 'read /tmp/NAME',
} as const;

const OF_THE_PROCESS = {
  'its environment': 'read /proc/PID/environ',
  'its memory by file': 'write /proc/PID/mem',
  'its memory by call': 'read-memory PID',
  'its descriptors': 'take-descriptor PID',
  'its root directory': 'read /proc/PID/root/tmp/NAME',
} as const;

/** Landlock names files and abstract sockets alone, and lets /dev be read. */
const AT_POLICY = ['a port on loopback', 'a POSIX queue', 'a file in /dev/shm'];

function offered(
  whose: 'HOST' | 'OTHER' | 'OWN',
  of: Record<string, string>,
  expect: (what: string) => Attempt['expect'],
) {
  const words = { HOST: 'of the host', OTHER: 'of another sandbox', OWN: 'its own' }[whose];
  return Object.entries(of).map(([what, how]) =>
    attempt(
      `${what}: ${words}`,
      how.replace(/NAME|KEY|PORT|PID/g, (word) => `{${whose}_${word}}`),
      expect(what),
    ),
  );
}

const atPolicy = (what: string): Partial<Record<Setting, Expected>> =>
  what === 'a socket by its path'
    ? BY_POLICY_FILTER
    : AT_POLICY.includes(what) || what.startsWith('System V')
      ? { policy: 'open' }
      : {};

const SOCKETS_OF_DAEMONS = `/var/run/docker.sock /run/docker.sock /run/containerd/containerd.sock /run/podman/podman.sock
  /run/crio/crio.sock /run/libvirt/libvirt-sock /run/dbus/system_bus_socket /run/systemd/private /run/systemd/notify
  /run/systemd/journal/socket /dev/log /run/udev/control /run/snapd.socket /run/lxd.socket /run/user/1000/bus
  /tmp/.X11-unix/X0 /run/nscd/socket /run/rpcbind.sock /var/run/nscd/socket /run/sandboxer.sock`;

const FILES_OF_THE_HOST = `/host /root/.ssh /root/.aws /root/.docker /home/user/.ssh /home/user/.aws /etc/shadow-
  /etc/sudoers.d/README /var/lib/docker /var/lib/containerd /var/lib/sandboxer /var/lib/private /var/log/syslog
  /var/log/auth.log /var/spool/cron /boot /lost+found /mnt /media /srv /run/credentials
  /var/run/secrets/kubernetes.io /usr/local/etc/secrets`;

export const neighbours: AttemptClass = {
  title: 'The host, and other sandboxes',
  why: 'what runs beside it, by every name that the kernel gives things',
  policy: 'held',
  // The machine is the host itself there.
  withoutWall: 'would do harm',
  attempts: [
    ...offered('HOST', OFFERED, atPolicy),
    ...offered('HOST', OF_THE_PROCESS, () => ({})),
    ...offered('OTHER', OFFERED, atPolicy),
    ...offered('OTHER', OF_THE_PROCESS, () => ({})),
    // That they fail elsewhere tells nothing unless they succeed here.
    ...offered('OWN', OFFERED, () => ({ ...inContainers('works'), policy: 'open' })),
    attempt('names of sockets: of the host', 'sockets-named {HOST_NAME}', { policy: 'open' }),
    attempt('names of sockets: of another sandbox', 'sockets-named {OTHER_NAME}', { policy: 'open' }),
    ...each('connect', SOCKETS_OF_DAEMONS, BY_POLICY_FILTER),
    ...each('read', FILES_OF_THE_HOST),
    // /etc is shown to programs at this level.
    ...each('read', '/etc/ssh /etc/machine-id', { policy: 'open' }),
    ...each('read', '/.init /.sandboxer/agent', { docker: 'own', oneId: 'own' }),
    ...each('write', '/.init /.sandboxer/agent'),
    ...each('write', '/usr/bin/true /usr/bin/env /usr/lib/os-release', { root: 'own' }),
    attempt('a link in /usr', 'call link @/usr/bin/true @/usr/bin/attempted', { root: 'own' }),
    attempt('another file in the place of the agent', 'replace /etc/hosts'),
    attempt('its own /tmp', 'read /tmp', { ...inContainers('works'), policy: 'open' }),
  ],
};
