/* Landlock: the paths that this process and all its children may reach. confine-calls.c filters system calls beside it. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../agent.h"

/* Landlock version 3 is the first that also restricts truncation. */
#define LEAST_VERSION 3
#define CREATE_RULESET 444
#define ADD_RULE 445
#define RESTRICT_SELF 446
#define RULE_PATH_BENEATH 1

enum {
  EXECUTE = 1 << 0,
  WRITE_FILE = 1 << 1,
  READ_FILE = 1 << 2,
  READ_DIR = 1 << 3,
  TRUNCATE = 1 << 14,
  IOCTL_DEVICE = 1 << 15,
};
#define RIGHTS_OF_3 ((1u << 15) - 1)
#define READ (EXECUTE | READ_FILE | READ_DIR)
#define OF_FILES (EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEVICE)
/* Scopes: abstract sockets of other processes, and signals to them. */
#define SCOPES 3

typedef struct {
  uint64_t files, network, scoped;
} Ruleset;

typedef struct __attribute__((packed)) {
  uint64_t allowed;
  int32_t fd;
} Rule;

static bool confined;

static int landlock_version(void) {
  long version = syscall(CREATE_RULESET, NULL, 0, 1u);
  return version < LEAST_VERSION ? 0 : (int)version;
}

/* A path that does not exist needs no rule. */
static bool allow(int ruleset, const char *path, uint64_t rights) {
  struct stat st;
  int fd = open(path, O_PATH | O_CLOEXEC);
  if (fd < 0) return errno == ENOENT;
  Rule rule = {rights, fd};
  if (fstat(fd, &st) == 0 && !S_ISDIR(st.st_mode)) rule.allowed &= OF_FILES;
  bool added = syscall(ADD_RULE, ruleset, RULE_PATH_BENEATH, &rule, 0) == 0;
  close(fd);
  return added;
}

static const char *restrict_files(const Confinement *c, int version) {
  uint64_t all = RIGHTS_OF_3 | (version >= 5 ? IOCTL_DEVICE : 0);
  Ruleset handled = {.files = all, .scoped = SCOPES};
  size_t size = version >= 6 ? sizeof handled : sizeof handled.files;
  int ruleset = (int)syscall(CREATE_RULESET, &handled, size, 0);
  if (ruleset < 0) return "Landlock makes no set of rules";
  bool done = true;
  for (size_t i = 0; done && i < c->read_len; i++) done = allow(ruleset, c->read[i], READ);
  for (size_t i = 0; done && i < c->write_len; i++) done = allow(ruleset, c->write[i], all);
  done = done && syscall(RESTRICT_SELF, ruleset, 0) == 0;
  int error = errno;
  close(ruleset);
  errno = error;
  return done ? NULL : "Landlock does not take the rules";
}

const char *confine(const Confinement *c) {
  int version = landlock_version();
  struct rlimit none = {0, 0};
  if (version == 0) {
    errno = EOPNOTSUPP;
    return "the kernel has no Landlock of version 3 (Linux 6.2)";
  }
  if (setrlimit(RLIMIT_CORE, &none) != 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
    return "core files and new privileges cannot be ruled out";
  const char *lacking = restrict_files(c, version);
  if (lacking == NULL && !confine_calls()) lacking = "the kernel takes no filter of system calls for this processor";
  confined = lacking == NULL;
  return lacking;
}

/* Returns 0 if the directory of the path may be listed, else errno. Landlock does not restrict stat: without this check, entries
 * of a closed directory could be described. */
int confine_look(int base, const char *path) {
  char dir[PATH_MAX];
  if (!confined) return 0;
  const char *slash = strrchr(path, '/'), *last = slash == NULL ? path : slash + 1;
  bool itself = strcmp(last, "..") == 0 || *last == 0;
  size_t len = itself ? strlen(path) : slash == NULL ? 0 : slash == path ? 1 : (size_t)(slash - path);
  if (len >= sizeof dir) return ENAMETOOLONG;
  memcpy(dir, path, len);
  dir[len] = 0;
  int fd = openat(base, len == 0 ? "." : dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return errno;
  close(fd);
  return 0;
}
