/* Moves a tree where rename(2) cannot: packs it, unpacks it beside the target, puts it in place, then removes the source. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../agent.h"

static void nothing(void) {}

static int copy_tree(TreeWork *work, const char *from, const char *beside) {
  int pipe_fds[2], status = 0;
  if (pipe2(pipe_fds, O_CLOEXEC) != 0) return errno;
  pid_t pid = fork();
  if (pid < 0) return errno;
  if (pid == 0) {
    TreeWork packing = {.base = work->base, .data = pipe_fds[1], .opened = nothing};
    close(pipe_fds[0]);
    _exit(pack_tree(&packing, from) & 0x7f);
  }
  close(pipe_fds[1]);
  TreeWork unpacking = {.base = work->base, .data = pipe_fds[0], .opened = nothing};
  int error = unpack_tree(&unpacking, beside);
  close(pipe_fds[0]);
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
  int packed = WIFEXITED(status) ? WEXITSTATUS(status) : EIO;
  work->files = unpacking.files;
  memcpy(work->why, unpacking.why, sizeof work->why);
  return packed != 0 && packed != EPIPE ? packed : error;
}

static int put_in_place(TreeWork *work, const char *from, const char *to, bool overwrite) {
  if (!overwrite) return rename_keeping(work->base, from, work->base, to);
  return renameat(work->base, from, work->base, to) == 0 ? 0 : errno;
}

int move_tree(TreeWork *work, const char *from, const char *to, bool overwrite) {
  char beside[PATH_MAX], made[PATH_MAX], link[PATH_MAX];
  struct stat st;
  const char *slash = strrchr(to, '/'), *name = strrchr(from, '/');
  int dir = slash == NULL ? 0 : (int)(slash - to) + 1;
  name = name == NULL ? from : name + 1;
  if (snprintf(beside, sizeof beside, "%.*s%sm%d", dir, to, TEMPORARY_PREFIX, (int)getpid()) >= (int)sizeof beside ||
      snprintf(made, sizeof made, "%s/%s", beside, name) >= (int)sizeof made)
    return ENAMETOOLONG;
  if (fstatat(work->base, from, &st, AT_SYMLINK_NOFOLLOW) != 0) return errno;
  int error;
  if (S_ISLNK(st.st_mode)) {
    ssize_t len = readlinkat(work->base, from, link, sizeof link - 1);
    if (len < 0) return errno;
    link[len] = 0;
    error = symlinkat(link, work->base, beside) == 0 ? put_in_place(work, beside, to, overwrite) : errno;
  } else if (S_ISDIR(st.st_mode) || S_ISREG(st.st_mode)) {
    error = copy_tree(work, from, beside);
    if (error == 0 && S_ISDIR(st.st_mode) && fchmodat(work->base, beside, st.st_mode & 0777, 0) != 0) error = errno;
    if (error == 0) error = put_in_place(work, S_ISDIR(st.st_mode) ? beside : made, to, overwrite);
  } else {
    return EXDEV;
  }
  TreeWork cleaning = {.base = work->base};
  (void)remove_tree(&cleaning, beside);
  if (error != 0) return error;
  work->why[0] = 0;
  return remove_tree(work, from);
}
