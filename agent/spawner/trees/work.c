/* Runs slow work in processes of its own. The reaper process (`janitor_*`) removes discarded files; a copy runs in a process of
 * its own and reports when it is done. */
#define _GNU_SOURCE
#include "../rights/confine.h"
#include "../disks/disk-watch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t janitor;
static int janitor_wake = -1;
/* Memory shared by the spawner and the reaper process. */
static volatile struct {
  bool busy;         /* a removal is under way */
  int works;         /* copies and the like that a request waits for */
  int64_t works_since;
  int64_t room_until; /* a sandbox is being started */
} *seen;

/* Interval of emptying slots during a removal. Best done when the trash is empty: only then can all memory charged for it be
 * reclaimed. */
#define TIDY_EVERY_MS 200
/* Longest pause of a removal for a copy that a request waits for: both write to the same journal. */
#define MAKE_ROOM_MS 2000
#define START_MS 30

static void child_begins(const char *name) {
  sigset_t none;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  prctl(PR_SET_NAME, name);
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
}

/* A call came since the trash was last opened: it may have new entries. */
static bool called;

/* Takes a call and closes its descriptor, which may take long. Returns false when there is no call, or the spawner is gone. */
static bool take_call(int flags) {
  char word;
  int fd;
  if (receive_with(3, &word, sizeof word, &fd, 1, flags) <= 0) return false;
  if (fd >= 0) close(fd);
  return called = true;
}

/* Called during a removal, which may take long: slots that wait to be emptied and held descriptors are served meanwhile. */
static int64_t tidy_at;
static void meanwhile(void) {
  while (take_call(MSG_DONTWAIT)) continue;
  if (now_ms() < tidy_at) return;
  slots_tidy();
  tidy_at = now_ms() + TIDY_EVERY_MS;
}

static bool in_the_way(int64_t now) {
  return (seen->works > 0 && now < seen->works_since + MAKE_ROOM_MS) || now < seen->room_until;
}

/* Pauses in the middle of a large tree while a copy or a start needs the disk. */
static void make_room(void) {
  struct pollfd call = {.fd = 3, .events = POLLIN};
  while (in_the_way(now_ms()))
    if (poll(&call, 1, 10) > 0 && !take_call(MSG_DONTWAIT)) break;
  meanwhile();
}

void janitor_make_room(void) { seen->room_until = now_ms() + START_MS; }

static void empty_trash(void) {
  char path[PATH_MAX + 512];
  snprintf(path, sizeof path, "%s/trash", settings.base);
  DIR *directory = opendir(path);
  if (directory == NULL) return;
  tidy_at = now_ms() + TIDY_EVERY_MS;
  for (struct dirent *entry; (entry = readdir(directory)) != NULL; meanwhile()) {
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    snprintf(path, sizeof path, "%s/trash/%s/disk", settings.base, entry->d_name);
    if (is_subvolume(path)) subvolume_remove(path);
    snprintf(path, sizeof path, "%s/trash/%s", settings.base, entry->d_name);
    tree_remove(path);
  }
  closedir(directory);
}

static void __attribute__((noreturn)) janitor_main(int wake) {
  child_begins("sbx-janitor");
  dup2(wake, 3);
  close_range(4, ~0u, 0);
  setpriority(PRIO_PROCESS, 0, 5);
  if (confine(DUTY_REMOVE) < 0) _exit(2);
  tree_meanwhile = make_room;
  do {
    seen->busy = true;
    while (take_call(MSG_DONTWAIT)) continue;
    called = false;
    empty_trash();
    slots_tidy();
    seen->busy = false;
  } while (called || take_call(0));
  _exit(0);
}

void janitor_start(void) {
  int ends[2];
  if (seen == NULL) seen = share(sizeof *seen);
  seen->busy = false;
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0) return;
  janitor = fork();
  if (janitor == 0) janitor_main(ends[0]);
  close(ends[0]);
  if (janitor_wake >= 0) close(janitor_wake);
  janitor_wake = ends[1];
}

/* Wakes the reaper process. A call that finds the queue full is dropped: earlier calls are waiting. */
static void call_janitor(int fd) {
  bool sent = send_with(janitor_wake, "c", 1, &fd, fd >= 0, MSG_DONTWAIT) == 0;
  if (!sent && errno != EAGAIN) say("the janitor does not listen");
  if (fd >= 0) close(fd);
}

/* Closes a descriptor in the reaper process, where it delays no request. */
void janitor_release(int fd) {
  if (fd >= 0) call_janitor(fd);
}

/* Has the slot emptied that a sandbox has left. */
void janitor_tidy_slots(void) { call_janitor(-1); }

/* Moves a path to the trash at once; the reaper process removes it later. */
void janitor_discard(const char *path) {
  static unsigned serial;
  char target[PATH_MAX + 64];
  snprintf(target, sizeof target, "%s/trash/%d-%u", settings.base, getpid(), serial++);
  if (rename(path, target) < 0) {
    if (errno != ENOENT) say("cannot throw away %s: %s", path, strerror(errno));
    return;
  }
  call_janitor(-1);
}

bool janitor_reaped(pid_t pid) {
  if (pid != janitor) return false;
  janitor = 0;
  if (!leaving) janitor_start();
  return true;
}

bool janitor_works(void) { return seen->busy; }

/* Ends the reaper process. The next one continues with the trash; descriptors that this one holds are closed. */
void janitor_end(void) {
  if (janitor > 0) kill(janitor, SIGKILL);
  if (janitor > 0) waitpid(janitor, NULL, 0);
  if (janitor_wake >= 0) close(janitor_wake);
  janitor_wake = -1;
}

struct work {
  int result;
  int pidfd;
  work_done done;
  void *context;
};
struct outcome {
  struct tally tally;
  int error;
  char why[120]; /* empty: errno is enough */
};
static const char *refused_why;

int work_refused(int error, const char *why) {
  refused_why = why;
  errno = error;
  return -1;
}

static void work_finished(void *context, uint32_t events) {
  struct work *work = context;
  struct outcome outcome = {.error = EIO};
  (void)events;
  ssize_t got = read(work->result, &outcome, sizeof outcome);
  if (got < 0 && errno == EAGAIN) return;
  bool whole = got == sizeof outcome;
  seen->works--;
  unwatch_fd(work->result);
  close(work->result);
  if (work->pidfd >= 0) close(work->pidfd);
  bool ok = whole && outcome.error == 0;
  const char *why = whole && outcome.why[0] ? outcome.why : strerror(outcome.error);
  work->done(work->context, ok, &outcome.tally, ok ? "" : why);
  free(work);
}

/* Returns a path as a worker confined to the base sees it. */
static const char *below_base(const char *path) { return path + strlen(settings.base); }

/* Copies from a disk image in a mount namespace of its own: the mount ends with it. */
static int copy_from_image(const char *image, const char *to, struct tally *tally) {
  char point[PATH_MAX + 32];
  snprintf(point, sizeof point, "%s/mnt/u", settings.base);
  if (unshare(CLONE_NEWNS) < 0 || disk_mount(image, point) < 0) return -1;
  return confine_below(settings.base, DUTY_COPY) < 0 ? -1 : tree_copy("/mnt/u/upper", below_base(to), tally);
}

/* Returns whether the path is a directory: a link in a layer must not lead out of it. */
static bool is_layered(const char *path) {
  struct stat info;
  return lstat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

/* Copies all layers as one: a plain tree, without the files that were removed. */
static int copy_merged(const struct launch *layers, const char *to, struct tally *tally) {
  char options[4096], name[16], source[PATH_MAX + 300], point[PATH_MAX + 32];
  snprintf(point, sizeof point, "%s/mnt", settings.base);
  if (unshare(CLONE_NEWNS) < 0 || chdir(point) < 0) return -1;
  int length = snprintf(options, sizeof options, "%slowerdir=", settings.usermap[0] ? "userxattr," : "");
  for (int i = 0; i < layers->layer_count; i++) {
    snprintf(source, sizeof source, "%s/%s", settings.base, layers->layers[i]);
    snprintf(name, sizeof name, "l%d", i);
    if (mkdir(name, 0700) < 0 && errno != EEXIST) return -1;
    if (attach_idmapped(source, name, -1) < 0) return -1;
    length += snprintf(options + length, sizeof options - (size_t)length, "%s%s", i ? ":" : "", name);
  }
  if (mount("overlay", "u", "overlay", MS_NODEV | MS_NOSUID | MS_RDONLY, options) < 0) return -1;
  if (confine_below(settings.base, DUTY_COPY) < 0 || chdir("/mnt") < 0) return -1;
  to = below_base(to);
  if (tree_copy("u", to, tally) < 0) return -1;
  /* Removed files of the host must stay removed: for its directories the marks of overlayfs are copied, too. */
  for (int part = 0; part < layers->host_count; part++) {
    snprintf(source, sizeof source, "%s/%s", to, layers->host[part]);
    if (tree_remove(source) < 0 || mkdir(source, 0755) < 0) return -1;
    for (int i = layers->layer_count - 1; i >= 0; i--) {
      snprintf(point, sizeof point, "l%d/%s", i, layers->host[part]);
      if (is_layered(point) && tree_apply(point, source, tally) < 0) return -1;
    }
  }
  return 0;
}

/* Flushes the whole file system at once: a wait for each of thousands of files would take longer. */
static int flush(const char *path) {
  int fd = confine_below(path, DUTY_READ) < 0 ? -1 : open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  return fd < 0 ? -1 : syncfs(fd);
}

static int measure(const char *path, struct tally *tally) {
  return confine_below(path, DUTY_READ) < 0 || tree_exceeds("/", INT64_MAX, INT64_MAX, tally) ? -1 : 0;
}

/* Does one job. Steps that a confined worker cannot do come first: resolving paths, mounting, connecting to Node. */
static int perform(const struct job *job, struct tally *tally) {
  if (job->subvolume) {
    if (confine_below(settings.base, DUTY_COPY) < 0) return -1;
    char upper[PATH_MAX * 2];
    const char *to = below_base(job->to);
    snprintf(upper, sizeof upper, "%s/upper", to);
    /* A subvolume copy, unlike any other, does not know its content: files and bytes are not counted. */
    return subvolume_copy(below_base(job->subvolume), to) < 0 ? -1 : access(upper, F_OK);
  }
  if (job->pack) return pack_layer(job->pack, job->to, job->most, tally);
  if (job->disks) return disks_count(job->disks, job->disk_count);
  if (job->measure) return measure(job->measure, tally);
  if (job->flush) return flush(job->flush);
  if (job->archive) return unpack_layer(job->archive, job->to, &job->bounds, tally);
  if (job->layers) return copy_merged(job->layers, job->to, tally);
  if (job->image) return copy_from_image(job->image, job->to, tally);
  if (confine_below(settings.base, DUTY_COPY) < 0) return -1;
  return tree_copy(below_base(job->from), below_base(job->to), tally);
}

/* Flushes a disk that is kept, in the background: the end of a volatile overlay does not. */
void work_flush(const char *path) {
  pid_t pid = fork();
  if (pid != 0) return;
  child_begins("sbx-flush");
  keep_only(NULL, 0);
  _exit(flush(path) < 0);
}

struct work *work_start(const struct job *job, work_done done, void *context) {
  int ends[2] = {-1, -1};
  struct work *work = calloc(1, sizeof *work);
  struct tally none = {0, 0};
  pid_t pid = work != NULL && pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0 ? fork() : -1;
  if (pid < 0) {
    if (ends[0] >= 0) close(ends[0]), close(ends[1]);
    free(work);
    done(context, false, &none, strerror(errno));
    return NULL;
  }
  if (pid == 0) {
    struct outcome outcome = {{0, 0}, 0, ""};
    child_begins(job->archive ? "sbx-unpack" : job->pack ? "sbx-pack" : job->measure || job->disks ? "sbx-measure" : "sbx-copy");
    dup2(ends[1], 3);
    close_range(4, ~0u, 0);
    if (perform(job, &outcome.tally) < 0) outcome.error = errno ? errno : EIO;
    if (refused_why) snprintf(outcome.why, sizeof outcome.why, "%s", refused_why);
    if (write(3, &outcome, sizeof outcome) < 0) _exit(1);
    _exit(0);
  }
  close(ends[1]);
  if (seen->works++ == 0) seen->works_since = now_ms();
  *work = (struct work){ends[0], (int)syscall(SYS_pidfd_open, pid, 0), done, context};
  watch_fd(ends[0], EPOLLIN, work_finished, work);
  return work;
}

/* Ends the work without a result, soon. */
void work_give_up(const struct work *work) {
  if (work->pidfd >= 0) syscall(SYS_pidfd_send_signal, work->pidfd, SIGKILL, NULL, 0);
}
