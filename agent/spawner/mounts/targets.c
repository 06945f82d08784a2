/* Checks the targets of a sandbox's mounts in the file system that it starts with: a link in an image, or one that a program
 * inside made before, must not lead a mount over a place that the sandbox itself depends on. The file "targets" has, each with a
 * NUL at its end: "r PATH", a place that no mount may touch, "b PATH", one that no directory of the host may touch, and "m FIELD
 * PATH" or "v FIELD PATH", the target of a directory of the host or of a volume. */
#define _GNU_SOURCE
#include "../sandbox/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINKS_MAX 40
#define TARGETS_MAX 64

/* Removes the first part of a path and returns it in `part`. */
static bool take_part(char *rest, char *part, size_t size) {
  size_t start = strspn(rest, "/"), length = strcspn(rest + start, "/");
  if (length == 0) return false;
  snprintf(part, size, "%.*s", (int)length, rest + start);
  memmove(rest, rest + start + length, strlen(rest + start + length) + 1);
  return true;
}

static void cut_last(char *path) {
  char *slash = strrchr(path, '/');
  if (slash) *slash = 0;
}

/* Resolves a path below `root` as the runtime will: links start anew at the root and never lead above it, and missing parts are
 * taken as written. Empty for the root itself. */
static int place_inside(int root, const char *path, char place[PATH_MAX]) {
  char rest[2 * PATH_MAX], part[NAME_MAX + 2], link[PATH_MAX], more[2 * PATH_MAX];
  int links = 0;
  snprintf(rest, sizeof rest, "%s", path);
  place[0] = 0;
  while (take_part(rest, part, sizeof part)) {
    if (strcmp(part, ".") == 0) continue;
    if (strcmp(part, "..") == 0) {
      cut_last(place);
      continue;
    }
    size_t length = strlen(place);
    if (length + strlen(part) + 2 > PATH_MAX) return errno = ENAMETOOLONG, -1;
    snprintf(place + length, PATH_MAX - length, "/%s", part);
    ssize_t got = readlinkat(root, place + 1, link, sizeof link - 1);
    if (got < 0 && errno != EINVAL && errno != ENOENT && errno != ENOTDIR) return -1;
    if (got < 0) continue;
    link[got] = 0;
    if (++links > LINKS_MAX) return errno = ELOOP, -1;
    if ((size_t)snprintf(more, sizeof more, "%s/%s", link, rest) >= sizeof rest) return errno = ENAMETOOLONG, -1;
    memcpy(rest, more, sizeof rest);
    if (link[0] == '/') place[0] = 0;
    else cut_last(place);
  }
  return 0;
}

/* Returns whether the paths are equal or one lies in the other. */
static bool touch(const char *one, const char *other) {
  size_t length = strlen(one), others = strlen(other), common = length < others ? length : others;
  if (strncmp(one, other, common) != 0) return false;
  const char *longer = length > others ? one : other;
  return longer[common] == 0 || longer[common] == '/' || common == 0;
}

static char *read_whole(const char *path, size_t *size) {
  FILE *file = fopen(path, "re");
  if (file == NULL) return NULL;
  char *text = NULL;
  *size = 0;
  FILE *memory = open_memstream(&text, size);
  for (int byte; memory && (byte = getc(file)) != EOF;) putc(byte, memory);
  fclose(file);
  if (memory == NULL) return NULL;
  return fclose(memory) == 0 ? text : NULL;
}

struct judged {
  char kind;
  const char *field, *path;
  char place[PATH_MAX];
};

/* Parses the line into `one`, and resolves its path. */
static int judge(int root, char *line, struct judged *one) {
  one->kind = line[0];
  one->field = "";
  one->path = line[0] ? line + 2 : line;
  if (one->kind == 'm' || one->kind == 'v') {
    char *blank = strchr(line + 2, ' ');
    if (blank == NULL) return errno = EINVAL, -1;
    *blank = 0;
    one->field = line + 2;
    one->path = blank + 1;
  }
  return place_inside(root, one->path, one->place);
}

static bool excludes(const struct judged *one, const struct judged *other) {
  if (one->kind == 'r') return true;
  return one->kind == 'b' ? other->kind == 'm' : true;
}

/* Returns 0; 1 when a target is refused, with its field and the reason in `why`; or -1. */
int check_targets(const char *id, const char *root_path, char *why, size_t size) {
  char path[PATH_MAX + ID_MAX + 32];
  size_t length = 0;
  path_of(id, "targets", path, sizeof path);
  char *text = read_whole(path, &length);
  if (text == NULL) return errno == ENOENT ? 0 : -1;
  int root = open(root_path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), count = 0, result = root < 0 ? -1 : 0;
  struct judged *all = calloc(TARGETS_MAX, sizeof *all);
  if (all == NULL) result = -1;
  for (char *line = text; result == 0 && line < text + length; ) {
    size_t whole = strlen(line) + 1;
    struct judged *one = &all[count];
    if (count++ == TARGETS_MAX) errno = E2BIG, result = -1;
    else result = judge(root, line, one);
    bool target = result == 0 && one->field[0] != 0;
    if (target && one->place[0] == 0) {
      snprintf(why, size, "%s %s leads to the whole file system of the sandbox.", one->field, one->path);
      result = 1;
    }
    for (int i = 0; target && result == 0 && i < count - 1; i++) {
      if (!excludes(&all[i], one) || !touch(all[i].place, one->place)) continue;
      snprintf(why, size, "%s %.300s leads to %.300s, where %.300s is.", one->field, one->path, one->place, all[i].path);
      result = 1;
    }
    line += whole;
  }
  int error = errno;
  if (root >= 0) close(root);
  free(all);
  free(text);
  errno = error;
  return result;
}
