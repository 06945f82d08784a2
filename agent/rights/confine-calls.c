/*
 * Filter of system calls beside Landlock, which does not check connect() to a unix socket by its path: a session bus or an
 * engine's socket would lead out. A program without a unix socket can connect to none, by path or by abstract name.
 *
 * Only connected pairs are allowed as unix sockets. Such a pair cannot be connected anew, unless its type is SOCK_DGRAM (or
 * SOCK_RAW, which the kernel turns into it), which sends to any address. io_uring makes sockets past any filter, and the calls of
 * another processor mode (i386, x32, 32-bit arm) have other numbers, of which socketcall hides its arguments in memory. Kernel
 * keyrings belong to the user, and no rule for paths covers them.
 */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "../agent.h"

/* Values of linux/seccomp.h, linux/filter.h and linux/audit.h, which musl does not have. */
#define MODE_FILTER 2
#define KILL_PROCESS 0x80000000u
#define FAIL_WITH 0x00050000u
#define ALLOW 0x7fff0000u
#define IO_URING_SETUP 425
#define IO_URING_ENTER 426
#define IO_URING_REGISTER 427
#define NETLINK 16

#if defined __x86_64__ && !defined __ILP32__
#define MACHINE 0xc000003eu
#elif defined __aarch64__ && !defined __ILP32__
#define MACHINE 0xc00000b7u
#else
#define MACHINE 0u /* no filter, and so no confinement */
#endif

typedef struct {
  uint16_t code;
  uint8_t if_true, if_false;
  uint32_t value;
} Instruction;

typedef struct {
  uint16_t length;
  const Instruction *instructions;
} Program;

/* struct seccomp_data; the kernel reads family and type from the lower half of an argument, which comes first on both machines.
 * */
typedef struct {
  int32_t call;
  uint32_t machine;
  uint64_t instruction, arguments[6];
} Call;

#define LOAD(field) {0x20, 0, 0, (uint32_t)offsetof(Call, field)}
#define MASK(bits) {0x54, 0, 0, bits}
#define SKIP_UNLESS(what, count) {0x15, 0, count, what}
#define SKIP_BELOW(what, count) {0x35, 0, count, what}
#define ANSWER(value) {0x06, 0, 0, value}
#define FAIL(error) ANSWER(FAIL_WITH | (error))
#define NO_SUCH_CALL(number) SKIP_UNLESS(number, 1), FAIL(ENOSYS)
#define ALLOW_IF(what) SKIP_UNLESS(what, 1), ANSWER(ALLOW)

#define TYPE_OF_SOCKET 0xf

bool confine_calls(void) {
  static const Instruction instructions[] = {
      LOAD(machine),
      {0x15, 1, 0, MACHINE},
      ANSWER(KILL_PROCESS),
      LOAD(call),
#if defined __x86_64__
      SKIP_BELOW(0x40000000, 1), /* x32 */
      ANSWER(KILL_PROCESS),
#endif
      NO_SUCH_CALL(IO_URING_SETUP),
      NO_SUCH_CALL(IO_URING_ENTER),
      NO_SUCH_CALL(IO_URING_REGISTER),
      NO_SUCH_CALL(SYS_add_key),
      NO_SUCH_CALL(SYS_request_key),
      NO_SUCH_CALL(SYS_keyctl),
      /* Allows the network and netlink (lists of interfaces); every other family fails as in a kernel that does not have it. */
      SKIP_UNLESS(SYS_socket, 10),
      LOAD(arguments[0]),
      ALLOW_IF(AF_INET),
      ALLOW_IF(AF_INET6),
      ALLOW_IF(NETLINK),
      SKIP_UNLESS(AF_UNIX, 1),
      FAIL(EACCES),
      FAIL(EAFNOSUPPORT),
      SKIP_UNLESS(SYS_socketpair, 9),
      LOAD(arguments[0]),
      SKIP_UNLESS(AF_UNIX, 6),
      LOAD(arguments[1]),
      MASK(TYPE_OF_SOCKET),
      ALLOW_IF(SOCK_STREAM),
      ALLOW_IF(SOCK_SEQPACKET),
      FAIL(EACCES),
      ANSWER(ALLOW),
  };
  const Program program = {sizeof instructions / sizeof *instructions, instructions};
  if (MACHINE == 0) {
    errno = EOPNOTSUPP;
    return false;
  }
  return prctl(PR_SET_SECCOMP, MODE_FILTER, &program, 0, 0) == 0;
}
