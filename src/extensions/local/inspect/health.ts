import type { ExtensionHealth } from '../../../contract/extensions/extension.ts';
import { isoTime } from '../../../core/ports/clock.ts';
import type { ExtensionContext } from '../../../core/ports/extension.ts';
import type { Engine, Machinery } from '../engine/engine.ts';
import { lackingControllers } from '../engine/engine.ts';
import type { HostFacts } from '../host/host-facts.ts';

type Check = ExtensionHealth['checks'][number];

/** A wanted feature, whether it is there, and the exact way to get it. `needed`: no sandbox runs without it. */
interface Want {
  readonly name: string;
  readonly ok: boolean;
  readonly needed: boolean;
  readonly detail: string;
  readonly fix: string;
}

function controllerFix({ cgroups, root, group }: HostFacts): string {
  if (root && cgroups === 'v2')
    return 'Only a group without processes of its own hands controllers on. In a container, before the server starts: mkdir /sys/fs/cgroup/server; for p in $(cat /sys/fs/cgroup/cgroup.procs); do echo $p >/sys/fs/cgroup/server/cgroup.procs; done';
  if (root) return 'Mount the controllers below /sys/fs/cgroup, or boot with cgroup_no_v1=all.';
  if (cgroups === 'v2')
    return 'Run the server below your own service manager (systemd-run --user -p Delegate=yes … serve; loginctl enable-linger keeps it there), or as a service with Delegate=yes and DelegateSubgroup=server (systemd 254 or newer), or as root.';
  return `Run as root, or have root do this for you: for c in memory pids cpu freezer; do mkdir -p /sys/fs/cgroup/$c/${group}; chown -R YOU /sys/fs/cgroup/$c/${group}; done`;
}

function controllerWants(facts: HostFacts): Want[] {
  const { controllers, cgroups } = facts;
  const fix = controllerFix(facts);
  return (['memory', 'pids', 'cpu', 'freezer'] as const).map((name) => ({
    name: `${name} controller`,
    ok: controllers.includes(name),
    needed: false,
    detail: controllers.includes(name)
      ? `cgroup ${cgroups}`
      : name === 'freezer'
        ? 'a pause ends what runs and keeps the disk; a snapshot of a busy sandbox is not of one moment'
        : `${name} limits cannot be enforced: profiles that name one are refused`,
    fix,
  }));
}

/**
 * Describes whether the server or programs inside go first on a busy machine. Only one scheduler of disks knows weights: its
 * absence is no fault.
 */
function weightDetail({ controllers, ioWeighed }: HostFacts): string {
  const cpu = controllers.includes('cpu')
    ? 'all sandboxes together have half the weight of one service for processors'
    : 'sandboxes compete with the server for processors (no cpu controller)';
  return `${cpu}; ${ioWeighed ? 'and for the disk' : 'the scheduler of the disk knows no weights (bfq does)'}`;
}

function identityWants(facts: HostFacts): Want[] {
  const { root, userNamespaces, subordinate, kernel } = facts;
  const mapped = root && (kernel[0] > 5 || (kernel[0] === 5 && kernel[1] >= 19));
  return [
    {
      name: 'user namespaces',
      ok: userNamespaces,
      needed: true,
      detail: userNamespaces ? 'yes' : 'the kernel does not give them to this user',
      fix: 'sysctl -w user.max_user_namespaces=15000 kernel.unprivileged_userns_clone=1 kernel.apparmor_restrict_unprivileged_userns=0',
    },
    {
      name: 'mode',
      ok: root || subordinate !== null,
      needed: false,
      detail: root
        ? 'running as root: users inside map to host ids 1879048192 … 2147352575'
        : subordinate
          ? `ordinary user: users inside map to your subordinate ids from ${subordinate.firstUid}`
          : 'ordinary user without subordinate ids: one user inside, which is your own account on the host',
      fix: 'apt-get install uidmap; usermod --add-subuids 100000-165535 --add-subgids 100000-165535 "$USER"; or run as root',
    },
    {
      name: 'ids of their own',
      ok: mapped,
      needed: false,
      detail: mapped ? 'each sandbox has its own range of ids' : 'all sandboxes share one range of ids',
      fix: 'Run as root on Linux 5.19 or newer.',
    },
  ];
}

function levelWants({ levels }: HostFacts): Want[] {
  return (['gvisor', 'microvm'] as const).map((level) => {
    const runtime = levels.offered.get(level);
    const lack = levels.lacking.get(level);
    return {
      name: `isolation ${level}`,
      ok: runtime !== undefined,
      needed: false,
      detail: runtime ? `${runtime.name} ${runtime.version}` : `not offered: ${lack?.reason}`,
      fix: lack?.remedy ?? '',
    };
  });
}

function wantsOf(facts: HostFacts): Want[] {
  const { runtime, binaries, seccomp, hostSudo, root } = facts;
  const sudo = (hostSudo && root) || binaries.sudo !== null;
  return [
    {
      name: 'linux',
      ok: facts.linux,
      needed: true,
      detail: facts.linux ? 'yes' : 'this is not Linux',
      fix: 'Use a Linux machine.',
    },
    {
      name: 'OCI runtime',
      ok: runtime !== null,
      needed: true,
      detail: runtime ? `${runtime.kind} ${runtime.version}` : 'neither crun nor runc is there',
      fix: 'apt-get install crun',
    },
    ...levelWants(facts),
    {
      name: 'agent',
      ok: binaries.agent !== null && binaries.spawner !== null,
      needed: true,
      detail: binaries.agent && binaries.spawner ? 'built' : 'not built',
      fix: 'apt-get install gcc libc6-dev, then sandboxer daemon restart: it builds them',
    },
    { name: 'seccomp', ok: seccomp, needed: true, detail: facts.architecture, fix: 'Use x86-64 or arm64.' },
    ...identityWants(facts),
    ...controllerWants(facts),
    {
      name: 'disk limits',
      ok: facts.diskMaker !== null,
      needed: false,
      detail:
        facts.diskMaker === null
          ? 'disk_mb cannot be enforced: profiles that name it are refused'
          : 'loop devices; what sandboxes without disk_mb write is counted',
      fix: 'Run as root, with loop devices (modprobe loop) and mkfs.ext4 (apt-get install e2fsprogs).',
    },
    {
      name: 'server before sandboxes',
      ok: facts.controllers.includes('cpu'),
      needed: false,
      detail: weightDetail(facts),
      fix: controllerFix(facts),
    },
    {
      name: 'sudo inside',
      ok: sudo,
      needed: false,
      detail: hostSudo && root ? 'the host’s own' : sudo ? 'our own' : 'none',
      fix: 'Run scripts/build-spawner.sh.',
    },
  ];
}

/**
 * Returns a failed check if the kernel refused controllers that the facts promised: another process may have come in between.
 */
function refusedGroups(facts: HostFacts, machinery: Machinery): Check[] {
  const lacking = lackingControllers(facts, machinery.cgroups);
  if (lacking.length === 0) return [];
  const detail = `the kernel did not hand on ${lacking.join(', ')} below ${facts.unified ?? 'the groups of version 1'}: it cannot be enforced here`;
  return [{ name: 'control groups', ok: false, detail, fix: controllerFix(facts) }];
}

/** Returns the checks. Starts no program without need: the spawner only if there are sandboxes already. */
export async function healthOf(
  facts: HostFacts,
  engine: Engine,
  wanted: boolean,
  ctx: ExtensionContext,
): Promise<ExtensionHealth> {
  const checked_at = isoTime(ctx.clock.now());
  const wants = wantsOf(facts);
  const checks: Check[] = wants.map(({ name, ok, detail, fix }) => ({
    name,
    ok,
    detail,
    fix: ok ? null : fix,
  }));
  const missing = wants.find(({ ok, needed }) => needed && !ok);
  if (missing !== undefined) {
    return {
      status: 'undetected',
      detail: `${missing.name}: ${missing.detail}. ${missing.fix}`,
      checked_at,
      checks,
    };
  }
  const refused = await engine.check();
  checks.push({
    name: 'kernel',
    ok: refused === null,
    detail: refused ?? 'namespaces and overlayfs work',
    fix:
      refused === null
        ? null
        : 'Run outside of a container, or in one with the rights for namespaces and mounts.',
  });
  if (refused !== null) {
    return {
      status: 'undetected',
      detail: `The kernel refuses what a sandbox needs: ${refused}.`,
      checked_at,
      checks,
    };
  }
  const { runtime, controllers, cgroups } = facts;
  const usable = controllers.length > 0 ? `${cgroups} ${controllers.join(' ')}` : 'none';
  const detail = `${runtime?.kind} ${runtime?.version}; cgroups: ${usable}`;
  if (!wanted) return { status: 'healthy', detail, checked_at, checks };
  try {
    const machinery = await engine.machinery();
    const spawner = { name: 'spawner', ok: true, detail: 'it answers', fix: null };
    return {
      status: 'healthy',
      detail,
      checked_at,
      checks: [...checks, spawner, ...refusedGroups(facts, machinery)],
    };
  } catch (error) {
    ctx.signal.throwIfAborted();
    const why = error instanceof Error ? error.message : 'It does not start.';
    const check = { name: 'spawner', ok: false, detail: why, fix: 'See spawner.log in the state directory.' };
    return { status: 'unhealthy', detail: why, checked_at, checks: [...checks, check] };
  }
}
