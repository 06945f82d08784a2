/* Numbers of system calls by name, as far as this architecture and these headers have them. */
#include "probe.h"

#include <string.h>
#include <sys/syscall.h>

static const struct {
  const char *name;
  long number;
} CALLS[] = {
    {"unshare", SYS_unshare},
    {"clone", SYS_clone},
    {"setns", SYS_setns},
    {"mount", SYS_mount},
    {"umount2", SYS_umount2},
    {"pivot_root", SYS_pivot_root},
    {"chroot", SYS_chroot},
    {"fsopen", SYS_fsopen},
    {"fsconfig", SYS_fsconfig},
    {"fsmount", SYS_fsmount},
    {"fspick", SYS_fspick},
    {"open_tree", SYS_open_tree},
    {"move_mount", SYS_move_mount},
    {"mount_setattr", SYS_mount_setattr},
    {"listmount", 458},
    {"statmount", 457},
    {"open_tree_attr", 467},
    {"ptrace", SYS_ptrace},
    {"kcmp", SYS_kcmp},
    {"kill", SYS_kill},
    {"prlimit64", SYS_prlimit64},
    {"process_madvise", SYS_process_madvise},
    {"migrate_pages", SYS_migrate_pages},
    {"move_pages", SYS_move_pages},
    {"mbind", SYS_mbind},
    {"set_mempolicy", SYS_set_mempolicy},
    {"setpriority", SYS_setpriority},
    {"ioprio_set", SYS_ioprio_set},
    {"sched_setattr", SYS_sched_setattr},
    {"keyctl", SYS_keyctl},
    {"add_key", SYS_add_key},
    {"request_key", SYS_request_key},
    {"bpf", SYS_bpf},
    {"perf_event_open", SYS_perf_event_open},
    {"io_uring_setup", SYS_io_uring_setup},
    {"io_uring_enter", SYS_io_uring_enter},
    {"io_uring_register", SYS_io_uring_register},
    {"io_setup", SYS_io_setup},
    {"userfaultfd", SYS_userfaultfd},
    {"fanotify_init", SYS_fanotify_init},
    {"quotactl", SYS_quotactl},
    {"quotactl_fd", SYS_quotactl_fd},
#ifdef SYS_lookup_dcookie
    {"lookup_dcookie", SYS_lookup_dcookie},
#endif
    {"acct", SYS_acct},
    {"swapon", SYS_swapon},
    {"swapoff", SYS_swapoff},
    {"kexec_load", SYS_kexec_load},
#ifdef SYS_kexec_file_load
    {"kexec_file_load", SYS_kexec_file_load},
#endif
    {"init_module", SYS_init_module},
    {"finit_module", SYS_finit_module},
    {"delete_module", SYS_delete_module},
    {"reboot", SYS_reboot},
    {"adjtimex", SYS_adjtimex},
    {"clock_adjtime", SYS_clock_adjtime},
    {"sethostname", SYS_sethostname},
    {"setdomainname", SYS_setdomainname},
    {"syslog", SYS_syslog},
#ifdef SYS_iopl
    {"iopl", SYS_iopl},
#endif
#ifdef SYS_ioperm
    {"ioperm", SYS_ioperm},
#endif
#ifdef SYS_modify_ldt
    {"modify_ldt", SYS_modify_ldt},
#endif
    {"vhangup", SYS_vhangup},
#ifdef SYS_uselib
    {"uselib", SYS_uselib},
#endif
#ifdef SYS_ustat
    {"ustat", SYS_ustat},
#endif
#ifdef SYS_sysfs
    {"sysfs", SYS_sysfs},
#endif
#ifdef SYS_nfsservctl
    {"nfsservctl", SYS_nfsservctl},
#endif
    {"personality", SYS_personality},
    {"seccomp", SYS_seccomp},
#ifdef SYS_memfd_secret
    {"memfd_secret", SYS_memfd_secret},
#endif
#ifdef SYS_mknod
    {"mknod", SYS_mknod},
#endif
    {"mknodat", SYS_mknodat},
#ifdef SYS_chmod
    {"chmod", SYS_chmod},
#endif
#ifdef SYS_chown
    {"chown", SYS_chown},
#endif
    {"setxattr", SYS_setxattr},
#ifdef SYS_link
    {"link", SYS_link},
#endif
#ifdef SYS_rename
    {"rename", SYS_rename},
#endif
    {"setuid", SYS_setuid},
    {"prctl", SYS_prctl},
    {"socketpair", SYS_socketpair},
    {"name_to_handle_at", SYS_name_to_handle_at},
    {"lsm_set_self_attr", 460},
    {"lsm_list_modules", 461},
    {"landlock_create_ruleset", SYS_landlock_create_ruleset},
#ifdef SYS__sysctl
    {"_sysctl", SYS__sysctl},
#endif
#ifdef SYS_create_module
    {"create_module", SYS_create_module},
#endif
#ifdef SYS_query_module
    {"query_module", SYS_query_module},
#endif
#ifdef SYS_afs_syscall
    {"afs_syscall", SYS_afs_syscall},
#endif
#ifdef SYS_tuxcall
    {"tuxcall", SYS_tuxcall},
#endif
#ifdef SYS_security
    {"security", SYS_security},
#endif
#ifdef SYS_vserver
    {"vserver", SYS_vserver},
#endif
    {"pidfd_open", SYS_pidfd_open},
    {"process_mrelease", SYS_process_mrelease},
};

long call_number(const char *name) {
  for (size_t i = 0; i < sizeof CALLS / sizeof *CALLS; i++)
    if (strcmp(CALLS[i].name, name) == 0) return CALLS[i].number;
  return -1;
}
