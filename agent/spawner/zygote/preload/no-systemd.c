/*
 * Replaces libsystemd in a runtime that is kept loaded. crun uses systemd for control groups unless an option forbids it, and the
 * spawner forbids it: its groups exist before crun begins. libsystemd and five libraries behind it are most of what crun loads,
 * and each sandbox copies that memory twice. The library that is loaded first has the name of the replaced one (no-systemd.map,
 * scripts/build-spawner.sh), and the linker looks no further.
 *
 * These are all functions that crun calls, of any known version. A crun that calls another one fails to load, and the runtime is
 * then loaded for each sandbox, with everything.
 */
#include <errno.h>

#define ABSENT(name)                                         \
  int name(void);                                            \
  __attribute__((visibility("default"))) int name(void) {    \
    return -ENOSYS;                                          \
  }

ABSENT(sd_bus_add_match)
ABSENT(sd_bus_call)
ABSENT(sd_bus_default)
ABSENT(sd_bus_default_system)
ABSENT(sd_bus_default_user)
ABSENT(sd_bus_error_free)
ABSENT(sd_bus_error_get_errno)
ABSENT(sd_bus_match_signal_async)
ABSENT(sd_bus_message_append)
ABSENT(sd_bus_message_append_array)
ABSENT(sd_bus_message_append_basic)
ABSENT(sd_bus_message_append_strv)
ABSENT(sd_bus_message_close_container)
ABSENT(sd_bus_message_new_method_call)
ABSENT(sd_bus_message_open_container)
ABSENT(sd_bus_message_read)
ABSENT(sd_bus_message_unref)
ABSENT(sd_bus_process)
ABSENT(sd_bus_unref)
ABSENT(sd_bus_wait)
ABSENT(sd_journal_send_with_location)
ABSENT(sd_notify)
ABSENT(sd_notify_barrier)
