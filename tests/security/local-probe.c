/*
 * Tries, from inside a sandbox, one door after another, and prints "name<TAB>0 or errno" for each. It refuses to run where
 * it could do harm: argv[1] and argv[2] are the host's mount and host-name namespaces, which must not be its own.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/if_packet.h>
#include <linux/netlink.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/swap.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/timex.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

static void tell(const char *name, long result) {
  int error = result < 0 ? errno : 0;
  printf("%s\t%d\n", name, error);
  fflush(stdout);
}

#define TRY(name, call) (errno = 0, tell(name, (long)(call)))

static long open_for(const char *path, int flags) {
  int fd = open(path, flags | O_CLOEXEC | O_NONBLOCK);
  if (fd >= 0) close(fd);
  return fd < 0 ? -1 : 0;
}

static long write_to(const char *path, const char *text) {
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  long wrote = write(fd, text, strlen(text));
  int error = errno;
  close(fd);
  errno = error;
  return wrote < 0 ? -1 : 0;
}

static long in_child(long (*work)(void)) {
  int result[2] = {-1, EIO}, ends[2];
  if (pipe(ends) < 0) return -1;
  pid_t pid = fork();
  if (pid == 0) {
    errno = 0;
    result[0] = (int)work();
    result[1] = errno;
    if (write(ends[1], result, sizeof result) < 0) _exit(1);
    _exit(0);
  }
  close(ends[1]);
  if (read(ends[0], result, sizeof result) != sizeof result) result[1] = EIO;
  close(ends[0]);
  waitpid(pid, NULL, 0);
  errno = result[1];
  return result[0];
}

static long unshare_user(void) { return unshare(CLONE_NEWUSER); }
static long unshare_mount(void) { return unshare(CLONE_NEWNS); }
static long unshare_net(void) { return unshare(CLONE_NEWNET); }
static long unshare_pid(void) { return unshare(CLONE_NEWPID); }
static long clone_user(void) {
  long pid = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);
  if (pid == 0) _exit(0);
  return pid;
}
static long clone3_user(void) {
  struct { uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls; } args = {0};
  args.flags = CLONE_NEWUSER;
  args.exit_signal = SIGCHLD;
  long pid = syscall(SYS_clone3, &args, sizeof args);
  if (pid == 0) _exit(0);
  return pid;
}
static long setns_of(const char *path, int type) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  return fd < 0 ? -1 : setns(fd, type);
}
static long setns_init(void) { return setns_of("/proc/1/ns/mnt", CLONE_NEWNS); }
static long trace_init(void) { return ptrace(PTRACE_ATTACH, 1, 0, 0); }
static long trace_me(void) { return ptrace(PTRACE_TRACEME, 0, 0, 0); }
static long pivot(void) { return syscall(SYS_pivot_root, "/tmp", "/tmp"); }
static long read_init_memory(void) {
  char byte;
  struct iovec local = {&byte, 1}, remote = {(void *)0x400000, 1};
  return process_vm_readv(1, &local, 1, &remote, 1, 0);
}
static long steal_fd(void) {
  int pidfd = (int)syscall(SYS_pidfd_open, 1, 0);
  return pidfd < 0 ? -1 : syscall(SYS_pidfd_getfd, pidfd, 3, 0);
}
static long handle_open(void) {
  struct { struct file_handle head; char rest[128]; } handle = {.head = {.handle_bytes = 128}};
  int mount_id, fd = open("/", O_RDONLY | O_DIRECTORY);
  if (name_to_handle_at(AT_FDCWD, "/usr", &handle.head, &mount_id, 0) < 0) handle.head.handle_bytes = 8;
  return syscall(SYS_open_by_handle_at, fd, &handle, O_RDONLY);
}
static long lo_down(void) {
  struct ifreq request = {.ifr_name = "lo"};
  int fd = socket(AF_INET, SOCK_DGRAM, 0);
  request.ifr_flags = 0;
  return ioctl(fd, SIOCSIFFLAGS, &request);
}
static long push_input(void) {
  int master = posix_openpt(O_RDWR | O_NOCTTY);
  if (master < 0 || grantpt(master) < 0 || unlockpt(master) < 0) return -1;
  int slave = open(ptsname(master), O_RDWR | O_NOCTTY);
  char byte = 'x';
  return slave < 0 ? -1 : ioctl(slave, TIOCSTI, &byte);
}
static long set_clock(void) {
  struct timeval now;
  gettimeofday(&now, NULL);
  return settimeofday(&now, NULL);
}
static long abstract_socket(void) {
  /* Whatever listens in abstract names of the host must not be here. */
  FILE *file = fopen("/proc/net/unix", "re");
  char line[512];
  int found = 0;
  while (file && fgets(line, sizeof line, file)) found += strchr(line, '@') != NULL || strstr(line, " /") != NULL;
  errno = ENOENT;
  return found ? 0 : -1;
}
static long connect_to(const char *path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
  int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  return connect(fd, (struct sockaddr *)&address, sizeof address);
}
static long inherited_fds(void) {
  int found = 0;
  for (int fd = 3; fd < 1024; fd++) found += fcntl(fd, F_GETFD) >= 0;
  errno = EBADF;
  return found > 0 ? 0 : -1;
}
static long core_dump(void) {
  struct { uint64_t soft, hard; } limit;
  if (syscall(SYS_prlimit64, 0, 4, NULL, &limit) < 0) return -1;
  errno = EPERM;
  return limit.hard > 0 ? 0 : -1;
}
static long add_ambient(void) { return prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_SYS_ADMIN, 0, 0); }
static long hostname(void) { return sethostname("probed", 6); }
static long chmod_null(void) { return chmod("/dev/null", 0600); }
static long chown_null(void) { return chown("/dev/null", 1000, 1000); }


/* Families of IP have protocols that hardly anybody tests; the kernel loads their modules for whoever asks. */
static void try_protocols(void) {
  static const struct { const char *name; int type, protocol; } ASKED[] = {
      {"MPTCP", SOCK_STREAM, 262}, {"MPTCP, with flags", SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 262},
      {"UDPLITE", SOCK_DGRAM, 136}, {"SCTP", SOCK_STREAM, 132}, {"SCTP by its type", SOCK_SEQPACKET, 0},
      {"DCCP", 6, 33}, {"DCCP by its type", 6, 0}, {"L2TP", SOCK_DGRAM, 115}, {"SMC", SOCK_STREAM, 256}};
  char name[128];
  for (size_t i = 0; i < sizeof ASKED / sizeof *ASKED; i++) {
    for (int six = 0; six < 2; six++) {
      snprintf(name, sizeof name, "%s over IPv%d", ASKED[i].name, six ? 6 : 4);
      TRY(name, socket(six ? AF_INET6 : AF_INET, ASKED[i].type, ASKED[i].protocol));
    }
  }
  TRY("AF_SMC", socket(43, SOCK_STREAM, 0));
  /* The kernel reads 32 bits of each. */
  TRY("MPTCP behind a wide protocol", syscall(SYS_socket, (long)AF_INET, (long)SOCK_STREAM, (1L << 32) | 262));
  TRY("AF_PACKET behind a wide family", syscall(SYS_socket, (1L << 32) | AF_PACKET, (long)SOCK_RAW, 0L));
}

static bool is_usual(int family, int type, int protocol) {
  if (family == AF_UNIX || (family == AF_NETLINK && protocol == 0)) return true;
  if (family != AF_INET && family != AF_INET6) return false;
  int ping = family == AF_INET ? 1 : 58;
  return protocol == 0 ? type <= 2 : type == 1 ? protocol == 6 : type == 2 && (protocol == 17 || protocol == ping);
}

/* One socket, or pair, that is none of the usual ones. */
static long unusual_socket(void) {
  int pair[2];
  for (int family = 0; family < 48; family++)
    for (int type = 0; type < 12; type++)
      for (int protocol = 0; protocol < 264; protocol++) {
        int fd = is_usual(family, type, protocol) ? -1 : socket(family, type, protocol);
        if (fd >= 0) return fprintf(stderr, "socket(%d, %d, %d)\n", family, type, protocol), fd;
        if (family != AF_UNIX && socketpair(family, type, protocol, pair) == 0) return 0;
      }
  errno = EPROTONOSUPPORT;
  return -1;
}

/* What programs use every day; IPv6 may be off. */
static long usual_sockets(void) {
  static const struct { int family, type, protocol; } USED[] = {
      {AF_UNIX, SOCK_STREAM, 0},          {AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0}, {AF_INET, SOCK_STREAM, 0},
      {AF_INET, SOCK_STREAM, 6},          {AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0},    {AF_INET, SOCK_DGRAM, 17},
      {AF_INET6, SOCK_STREAM | 02000000, 0}, {AF_INET6, SOCK_STREAM, 6},                  {AF_INET6, SOCK_DGRAM, 17},
      {AF_NETLINK, SOCK_RAW, 0}};
  int pair[2];
  for (size_t i = 0; i < sizeof USED / sizeof *USED; i++)
    if (socket(USED[i].family, USED[i].type, USED[i].protocol) < 0 && errno != EAFNOSUPPORT) return -1;
  return socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
}

int main(int count, char **arguments) {
  char mount_ns[64] = "", name_ns[64] = "";
  if (count < 3) return 2;
  if (readlink("/proc/self/ns/mnt", mount_ns, 63) < 0 || readlink("/proc/self/ns/uts", name_ns, 63) < 0) return 2;
  if (strcmp(mount_ns, arguments[1]) == 0 || strcmp(name_ns, arguments[2]) == 0) {
    fputs("this is the host itself\n", stderr);
    return 3;
  }
  alarm(60);
  static const char *const WRITES[] = {
      "/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/sys/kernel/uevent_helper", "/proc/sys/kernel/hostname",
      "/proc/sys/vm/drop_caches", "/proc/sys/kernel/modprobe", "/sys/fs/cgroup/release_agent", "/sys/power/state",
      "/proc/1/oom_score_adj", "/proc/1/mem", "/dev/kmsg",
      "/sys/kernel/mm/transparent_hugepage/enabled", "/proc/acpi/wakeup", "/proc/irq/default_smp_affinity", "/.init",
      "/proc/1/exe", "/usr/bin/true", NULL};
  static const char *const READS[] = {
      "/proc/kcore", "/proc/1/environ", "/proc/1/maps", "/proc/1/root/etc/shadow", "/proc/1/cwd/.", "/proc/1/fd/3",
      "/proc/1/exe", "/.init", "/dev/mem", "/dev/kvm", "/dev/vda", "/dev/fuse", "/dev/net/tun", "/dev/loop-control",
      "/sys/firmware/acpi/tables/DSDT", "/root/.ssh", "/etc/ssh", "/home/user/.aws", "/var/lib/docker", "/host", NULL};
  static const char *const SOCKETS[] = {"/var/run/docker.sock", "/run/containerd/containerd.sock", "/run/podman/podman.sock",
                                        "/run/libvirt/libvirt-sock", "/run/dbus/system_bus_socket",
                                        "/run/systemd/private", NULL};
  char name[128];
  TRY("inherited descriptors", inherited_fds());
  TRY("another uid_map", write_to("/proc/self/uid_map", "0 0 1"));
  TRY("label of init", write_to("/proc/1/attr/current", "unconfined"));
  for (int i = 0; WRITES[i]; i++) snprintf(name, sizeof name, "write %s", WRITES[i]), TRY(name, open_for(WRITES[i], O_WRONLY));
  for (int i = 0; READS[i]; i++) snprintf(name, sizeof name, "read %s", READS[i]), TRY(name, open_for(READS[i], O_RDONLY));
  for (int i = 0; SOCKETS[i]; i++) snprintf(name, sizeof name, "connect %s", SOCKETS[i]), TRY(name, connect_to(SOCKETS[i]));
  TRY("core_pattern", write_to("/proc/sys/kernel/core_pattern", "|/tmp/x"));
  TRY("mount tmpfs", mount("none", "/mnt", "tmpfs", 0, NULL));
  TRY("mount bind", mount("/", "/mnt", NULL, MS_BIND, NULL));
  TRY("mount proc", mount("proc", "/mnt", "proc", 0, NULL));
  TRY("remount /usr", mount(NULL, "/usr", NULL, MS_REMOUNT | MS_BIND, NULL));
  TRY("umount /proc/kcore", umount2("/proc/kcore", MNT_DETACH));
  TRY("umount /usr", umount2("/usr", MNT_DETACH));
  TRY("fsopen", syscall(SYS_fsopen, "tmpfs", 0));
  TRY("open_tree", syscall(SYS_open_tree, AT_FDCWD, "/", 1));
  TRY("move_mount", syscall(SYS_move_mount, -1, "", -1, "/mnt", 0));
  TRY("mount_setattr", syscall(SYS_mount_setattr, -1, "", 0, NULL, 0));
  TRY("pivot_root", in_child(pivot));
  TRY("unshare user", in_child(unshare_user));
  TRY("unshare mount", in_child(unshare_mount));
  TRY("unshare net", in_child(unshare_net));
  TRY("unshare pid", in_child(unshare_pid));
  TRY("clone user", in_child(clone_user));
  TRY("clone3 user", in_child(clone3_user));
  TRY("setns", in_child(setns_init));
  TRY("ptrace init", in_child(trace_init));
  TRY("ptrace me", in_child(trace_me));
  TRY("process_vm_readv", read_init_memory());
  TRY("pidfd_getfd", steal_fd());
  TRY("kcmp", syscall(SYS_kcmp, 1, getpid(), 0, 0, 0));
  TRY("keyctl", syscall(SYS_keyctl, 0, -3, 1, 0, 0));
  TRY("add_key", syscall(SYS_add_key, "user", "x", "y", 1, -3));
  TRY("request_key", syscall(SYS_request_key, "user", "x", NULL, -3));
  TRY("io_uring_setup", syscall(SYS_io_uring_setup, 1, NULL));
  TRY("io_uring_enter", syscall(SYS_io_uring_enter, -1, 0, 0, 0, NULL, 0));
  TRY("io_uring_register", syscall(SYS_io_uring_register, -1, 0, NULL, 0));
  TRY("userfaultfd", syscall(SYS_userfaultfd, 1));
  TRY("bpf", syscall(SYS_bpf, 0, NULL, 0));
  TRY("perf_event_open", syscall(SYS_perf_event_open, NULL, 0, -1, -1, 0));
  TRY("open_by_handle_at", handle_open());
  TRY("init_module", syscall(SYS_init_module, NULL, 0, ""));
  TRY("finit_module", syscall(SYS_finit_module, -1, "", 0));
  TRY("delete_module", syscall(SYS_delete_module, "x", 0));
  TRY("kexec_load", syscall(SYS_kexec_load, 0, 0, NULL, 0));
  TRY("reboot", syscall(SYS_reboot, 0xfee1dead, 672274793, 0, NULL));
  TRY("swapon", swapon("/tmp/none", 0));
  TRY("acct", syscall(SYS_acct, "/tmp/none"));
  TRY("quotactl", syscall(SYS_quotactl, 0, NULL, 0, NULL));
  TRY("settimeofday", set_clock());
  TRY("sethostname", hostname());
  TRY("syslog", syscall(SYS_syslog, 3, NULL, 0));
  TRY("fanotify_init", syscall(SYS_fanotify_init, 0, 0));
  TRY("chroot escape", chroot("/proc/1/root"));
  TRY("mknod block", mknod("/tmp/probe-block", S_IFBLK | 0600, makedev(254, 0)));
  TRY("mknod char", mknod("/tmp/probe-char", S_IFCHR | 0600, makedev(1, 1)));
  TRY("AF_PACKET", socket(AF_PACKET, SOCK_RAW, 0));
  TRY("AF_VSOCK", socket(AF_VSOCK, SOCK_STREAM, 0));
  TRY("AF_ALG", socket(AF_ALG, SOCK_SEQPACKET, 0));
  TRY("AF_BLUETOOTH", socket(AF_BLUETOOTH, SOCK_RAW, 0));
  TRY("raw socket", socket(AF_INET, SOCK_RAW, 1));
  try_protocols();
  TRY("any unusual socket", unusual_socket());
  TRY("usual sockets", usual_sockets());
  TRY("netlink netfilter", socket(AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER));
  TRY("netlink audit", socket(AF_NETLINK, SOCK_RAW, NETLINK_AUDIT));
  TRY("netlink uevent", socket(AF_NETLINK, SOCK_RAW, NETLINK_KOBJECT_UEVENT));
  TRY("lo down", lo_down());
  TRY("TIOCSTI on a foreign terminal", in_child(push_input));
  TRY("unix sockets of the host", abstract_socket());
  TRY("core dumps", core_dump());
  TRY("ambient CAP_SYS_ADMIN", add_ambient());
  TRY("chmod /dev/null", chmod_null());
  TRY("chown /dev/null", chown_null());
  TRY("trusted xattr", setxattr("/tmp", "trusted.overlay.opaque", "y", 1, 0));
  TRY("link into /usr", link("/usr/bin/true", "/usr/bin/linked"));
  TRY("rename over /.init", rename("/etc/hosts", "/.init"));
  TRY("iopl", syscall(SYS_iopl, 3));
  return 0;
}
