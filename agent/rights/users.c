/* Reads users of the sandbox from its own /etc/passwd and /etc/group, by hand: the agent has no NSS. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../agent.h"

#define MAX_DATABASE (1024 * 1024)

typedef struct {
  const char *path;
  char *text;
  struct stat seen;
} Database;

static Database passwd = {.path = "/etc/passwd"}, group = {.path = "/etc/group"};

static bool unchanged(const struct stat *a, const struct stat *b) {
  return a->st_ino == b->st_ino && a->st_dev == b->st_dev && a->st_size == b->st_size &&
         a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
         a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

/* Returns the text of the database, or "" when it cannot be read. */
static const char *database_text(Database *db) {
  struct stat st;
  if (db->text != NULL && stat(db->path, &st) == 0 && unchanged(&st, &db->seen)) return db->text;
  free(db->text);
  db->text = NULL;
  int fd = open(db->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return "";
  if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size <= MAX_DATABASE) {
    size_t len = 0, cap = (size_t)st.st_size;
    char *text = malloc(cap + 1);
    while (text != NULL && len < cap) {
      ssize_t n = read(fd, text + len, cap - len);
      if (n <= 0) break;
      len += (size_t)n;
    }
    if (text != NULL) text[len] = 0;
    db->text = text;
    db->seen = st;
  }
  close(fd);
  return db->text == NULL ? "" : db->text;
}

/* Returns the n-th field of a line, between colons. */
static const char *field(const char *line, size_t n, size_t *len) {
  for (; n > 0; n--) {
    line += strcspn(line, ":\n");
    if (*line != ':') {
      *len = 0;
      return "";
    }
    line++;
  }
  *len = strcspn(line, ":\n");
  return line;
}

static bool number(const char *text, size_t len, uint32_t *value) {
  if (len == 0 || len > 10) return false;
  uint64_t v = 0;
  for (size_t i = 0; i < len; i++) {
    if (text[i] < '0' || text[i] > '9') return false;
    v = v * 10 + (uint64_t)(text[i] - '0');
  }
  if (v >= UINT32_MAX) return false;
  *value = (uint32_t)v;
  return true;
}

static bool number_field(const char *line, size_t n, uint32_t *value) {
  size_t len;
  const char *text = field(line, n, &len);
  return number(text, len, value);
}

static void copy_field(const char *line, size_t n, char *to, size_t size) {
  size_t len;
  const char *text = field(line, n, &len);
  if (len >= size) len = 0;
  memcpy(to, text, len);
  to[len] = 0;
}

/* Returns the line whose first field is `name`, or whose third is `number` when name is NULL. */
static const char *line_of(Database *db, const char *name, size_t wanted, uint32_t id) {
  for (const char *line = database_text(db); *line != 0;) {
    size_t len;
    uint32_t value;
    const char *first = field(line, 0, &len);
    if (name == NULL ? number_field(line, 2, &value) && value == id
                     : len == wanted && memcmp(first, name, len) == 0)
      return line;
    line += strcspn(line, "\n");
    if (*line == '\n') line++;
  }
  return NULL;
}

static bool lists(const char *members, size_t len, const char *name) {
  size_t wanted = strlen(name);
  for (size_t at = 0; at < len;) {
    size_t n = 0;
    while (at + n < len && members[at + n] != ',') n++;
    if (n == wanted && memcmp(members + at, name, n) == 0) return true;
    at += n + 1;
  }
  return false;
}

static void fill_groups(User *user) {
  Cred *cred = &user->cred;
  cred->groups[0] = cred->gid;
  cred->ngroups = 1;
  if (user->name[0] == 0) return;
  for (const char *line = database_text(&group); *line != 0 && cred->ngroups < MAX_GROUPS;) {
    size_t len;
    uint32_t gid;
    const char *members = field(line, 3, &len);
    if (number_field(line, 2, &gid) && gid != cred->gid && lists(members, len, user->name))
      cred->groups[cred->ngroups++] = gid;
    line += strcspn(line, "\n");
    if (*line == '\n') line++;
  }
}

static void fill_from(const char *line, User *user) {
  copy_field(line, 0, user->name, sizeof user->name);
  copy_field(line, 5, user->home, sizeof user->home);
  copy_field(line, 6, user->shell, sizeof user->shell);
}

/* Resolves NAME|UID[:NAME|GID]. A user with a group in the spec has no other. ENOENT: no such user, ESRCH: no such group. */
static int resolve(const char *spec, User *user) {
  const char *colon = strchr(spec, ':');
  size_t len = colon == NULL ? strlen(spec) : (size_t)(colon - spec);
  bool grouped = colon != NULL && colon[1] != 0;
  uint32_t uid, gid;
  const char *line;
  if (number(spec, len, &uid)) {
    line = line_of(&passwd, NULL, 0, uid);
    if (line == NULL || !number_field(line, 3, &gid)) gid = uid;
  } else {
    line = len == 0 ? NULL : line_of(&passwd, spec, len, 0);
    if (line == NULL || !number_field(line, 2, &uid) || !number_field(line, 3, &gid)) return ENOENT;
  }
  if (line != NULL) fill_from(line, user);
  if (grouped && !number(colon + 1, strlen(colon + 1), &gid)) {
    const char *named = line_of(&group, colon + 1, strlen(colon + 1), 0);
    if (named == NULL || !number_field(named, 2, &gid)) return ESRCH;
  }
  user->cred.uid = uid;
  user->cred.gid = gid;
  fill_groups(user);
  if (grouped) user->cred.ngroups = 1;
  return 0;
}

const char *user_spec(const Conn *c, const char *spec) {
  if (spec != NULL && *spec != 0) return spec;
  return c->user != NULL ? c->user : agent.user;
}

void user_refuse(Conn *c, uint32_t id, const char *spec, int error) {
  const char *named = user_spec(c, spec), *colon = named == NULL ? NULL : strchr(named, ':');
  if (error == EPERM) send_error(c, id, E_UNSUPPORTED, error, "the agent cannot become another user here");
  else if (error == ESRCH && colon != NULL) send_error(c, id, E_USER, error, "there is no group %.100s", colon + 1);
  else send_error(c, id, E_USER, error, "there is no user %.100s", named == NULL ? "" : named);
}

int user_resolve(const Conn *c, const char *spec, User *user) {
  memset(user, 0, sizeof *user);
  spec = user_spec(c, spec);
  int error = 0;
  if (spec != NULL) error = resolve(spec, user);
  else {
    char self[32];
    snprintf(self, sizeof self, "%u:%u", agent.uid, agent.gid);
    error = resolve(self, user);
  }
  if (error == 0 && !agent.privileged && user->cred.uid != agent.uid) error = EPERM;
  if (user->home[0] != '/') {
    const char *home = user->cred.uid == agent.uid ? getenv("HOME") : NULL;
    snprintf(user->home, sizeof user->home, "%s", home != NULL && *home == '/' && strlen(home) < sizeof user->home ? home : "/");
  }
  if (user->shell[0] != '/') strcpy(user->shell, "/bin/sh");
  return error;
}

const char *default_dir(const Conn *c, const User *user) {
  if (c->cwd != NULL) return c->cwd;
  return agent.cwd != NULL ? agent.cwd : user->home;
}
