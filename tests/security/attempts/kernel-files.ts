import type { AttemptClass } from './attempt.ts';
import { attempt, each, inContainers } from './attempt.ts';

const SETTINGS_OF_THE_KERNEL = `/proc/sys/kernel/core_pattern /proc/sys/kernel/modprobe /proc/sys/kernel/hotplug
  /proc/sys/kernel/sysrq /proc/sys/kernel/panic /proc/sys/kernel/hostname /proc/sys/kernel/domainname
  /proc/sys/kernel/randomize_va_space /proc/sys/kernel/kptr_restrict /proc/sys/kernel/dmesg_restrict
  /proc/sys/kernel/perf_event_paranoid /proc/sys/kernel/unprivileged_bpf_disabled /proc/sys/kernel/yama/ptrace_scope
  /proc/sys/kernel/ns_last_pid /proc/sys/kernel/shmmax /proc/sys/kernel/poweroff_cmd /proc/sys/kernel/usermodehelper/bset
  /proc/sys/kernel/pid_max /proc/sys/kernel/threads-max /proc/sys/kernel/keys/maxkeys
  /proc/sys/vm/drop_caches /proc/sys/vm/overcommit_memory /proc/sys/vm/panic_on_oom /proc/sys/vm/mmap_min_addr
  /proc/sys/vm/compact_memory /proc/sys/vm/swappiness
  /proc/sys/fs/binfmt_misc/register /proc/sys/fs/protected_symlinks /proc/sys/fs/protected_hardlinks
  /proc/sys/fs/suid_dumpable /proc/sys/fs/file-max /proc/sys/fs/pipe-max-size /proc/sys/fs/inotify/max_user_watches
  /proc/sys/fs/mqueue/queues_max /proc/sys/dev/tty/ldisc_autoload
  /proc/sys/net/ipv4/ip_forward /proc/sys/net/core/somaxconn /proc/sys/net/core/bpf_jit_enable
  /proc/sys/net/ipv4/ping_group_range`;

const LEVERS = `/proc/sysrq-trigger /proc/irq/default_smp_affinity /proc/irq/0/smp_affinity /proc/bus/pci/00/00.0
  /proc/scsi/scsi /proc/mtrr /proc/acpi/wakeup /proc/kcore /proc/latency_stats
  /proc/driver/rtc /proc/sys/kernel/tainted
  /sys/kernel/uevent_helper /sys/kernel/mm/transparent_hugepage/enabled /sys/kernel/mm/ksm/run /sys/kernel/profiling
  /sys/power/state /sys/power/disk /sys/power/wakeup_count /sys/fs/cgroup/release_agent /sys/fs/cgroup/memory/release_agent
  /sys/fs/cgroup/cgroup.procs /sys/fs/cgroup/pids/cgroup.procs /sys/fs/cgroup/memory/memory.limit_in_bytes
  /sys/fs/cgroup/memory.max /sys/fs/cgroup/pids.max /sys/fs/cgroup/pids/pids.max /sys/fs/cgroup/cgroup.subtree_control
  /sys/fs/cgroup/devices/devices.allow /sys/module/kernel/parameters/panic /sys/bus/pci/rescan /sys/devices/system/cpu/cpu0/online
  /sys/devices/system/cpu/smt/control /sys/block/vda/queue/scheduler /sys/block/vda/uevent /sys/class/net/lo/mtu
  /sys/class/net/lo/uevent /sys/kernel/debug/tracing/trace /sys/kernel/tracing/trace_marker /sys/fs/selinux/enforce
  /sys/firmware/efi/vars/del_var /sys/kernel/security/apparmor/.load`;

const TABLES_OF_THE_KERNEL = `/proc/keys /proc/timer_list /proc/sched_debug /proc/vmcore
  /proc/vmallocinfo /proc/slabinfo /proc/kpagecount /proc/kpageflags /proc/kpagecgroup /proc/scsi /proc/acpi
  /proc/asound /proc/latency_stats /proc/pagetypeinfo
  /sys/firmware/acpi/tables /sys/firmware/acpi/tables/DSDT /sys/firmware/efi /sys/firmware/dmi/tables/DMI
  /sys/kernel/debug /sys/kernel/tracing /sys/kernel/security /sys/fs/bpf /sys/fs/pstore /sys/kernel/config
  /sys/devices/virtual/powercap/intel-rapl/intel-rapl:0/energy_uj
  /sys/class/dmi/id/product_serial /sys/class/dmi/id/product_uuid`;

const TOLD = `/proc/cmdline /proc/version /proc/cpuinfo /proc/meminfo /proc/loadavg /proc/stat /proc/uptime /proc/interrupts
  /proc/partitions /proc/diskstats /proc/modules /proc/filesystems /proc/iomem /proc/ioports /proc/kallsyms /proc/zoneinfo
  /proc/buddyinfo /proc/softirqs /proc/swaps /proc/crypto /proc/locks /proc/cgroups /proc/consoles /proc/devices /proc/misc
  /proc/pressure/cpu /proc/pressure/memory /proc/pressure/io /proc/config.gz /proc/sys/kernel/random/boot_id
  /proc/sys/kernel/core_pattern /sys/kernel/notes /sys/kernel/boot_params/data /proc/bus/pci /sys/kernel/vmcoreinfo /sys/class/dmi/id/product_name /sys/block
  /sys/class/net /sys/module /proc/self/mountinfo /proc/self/cgroup`;

const REFUSED = { withoutWall: 'is refused' } as const;
const HARM = { withoutWall: 'would do harm' } as const;

export const kernelFiles: AttemptClass = {
  title: 'Settings, levers and tables of the kernel',
  why: 'settings are of the whole machine; some name a program that the kernel starts as root outside',
  policy: 'held',
  attempts: [
    ...each('write', SETTINGS_OF_THE_KERNEL),
    ...each('write', LEVERS),
    ...each(
      'write',
      '/proc/sys/user/max_user_namespaces /sys/fs/ext4/features/lazy_itable_init',
      {},
      REFUSED,
    ),
    attempt('core_pattern: a program', 'put /proc/sys/kernel/core_pattern |/tmp/x', {}, HARM),
    attempt('sysrq: sync', 'put /proc/sysrq-trigger s', {}, HARM),
    attempt('binfmt_misc: an interpreter', 'put /proc/sys/fs/binfmt_misc/register :x:', {}, HARM),
    ...each('read', '/proc/kcore /proc/kmsg', { policy: 'open' }, HARM),
    ...each('read', TABLES_OF_THE_KERNEL, { policy: 'open' }),
    ...each('read', TOLD, 'told'),
    ...each('read', '/proc/key-users', { docker: 'told', policy: 'told', oneId: 'told' }),
    attempt('pressure: be told of all', 'write /proc/pressure/memory', inContainers('told')),
  ],
};
