/*
 * A sudo without questions, for sandboxes whose host has none that works inside. Every user in a sandbox is its owner: the wall
 * is around it, not in it. Understands the options that scripts use: -u -g -n -E -H -i -s -S -k -v -b VAR=value and "--".
 */
#define _GNU_SOURCE
#include <errno.h>
#include <grp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

static void fail(const char *what) {
  fprintf(stderr, "sudo: %s: %s\n", what, strerror(errno));
  exit(1);
}

/* Finds a line name:x:uid:gid:…:home:shell, read by hand: a static program has no NSS. */
static bool find_user(const char *wanted, unsigned *uid, unsigned *gid, char *home, char *shell) {
  char line[1024], name[128];
  FILE *file = fopen("/etc/passwd", "re");
  bool found = false;
  while (file && !found && fgets(line, sizeof line, file)) {
    unsigned u, g;
    line[strcspn(line, "\n")] = 0;
    if (sscanf(line, "%127[^:]:%*[^:]:%u:%u:", name, &u, &g) != 3) continue;
    char number[16];
    snprintf(number, sizeof number, "#%u", u);
    if (strcmp(name, wanted) != 0 && strcmp(number, wanted) != 0) continue;
    char *at = line;
    for (int i = 0; i < 5 && at; i++) at = strchr(at, ':') ? strchr(at, ':') + 1 : NULL;
    char *end = at ? strchr(at, ':') : NULL;
    if (end == NULL) continue;
    snprintf(home, 512, "%.*s", (int)(end - at), at);
    snprintf(shell, 512, "%s", end[1] ? end + 1 : "/bin/sh");
    *uid = u;
    *gid = g;
    found = true;
  }
  if (file) fclose(file);
  return found;
}

int main(int count, char **arguments) {
  const char *user = "root", *old_home = getenv("HOME");
  bool login = false, use_shell = false, keep = false, background = false;
  char home[512] = "/root", shell[512] = "/bin/sh", old_user[32];
  unsigned uid = 0, gid = 0;
  int at = 1;
  snprintf(old_user, sizeof old_user, "%u", getuid());
  for (; at < count && arguments[at][0] == '-'; at++) {
    const char *option = arguments[at];
    if (strcmp(option, "--") == 0) {
      at++;
      break;
    }
    if (strncmp(option, "--user=", 7) == 0) user = option + 7;
    else if (strcmp(option, "--version") == 0) return puts("sandboxer-sudo") < 0;
    else if (strncmp(option, "--preserve-env", 14) == 0) keep = true;
    else if (option[1] == '-') continue;
    else
      for (const char *flag = option + 1; *flag; flag++) {
        bool takes = strchr("ugpCrthUT", *flag) != NULL;
        if (*flag == 'u' && (flag[1] || at + 1 < count)) user = flag[1] ? flag + 1 : arguments[++at];
        else if (takes && !flag[1] && at + 1 < count) at++;
        if (takes) break;
        login |= *flag == 'i';
        use_shell |= *flag == 's';
        keep |= *flag == 'E';
        background |= *flag == 'b';
        if (*flag == 'v' || *flag == 'k' || *flag == 'K' || *flag == 'l') return at + 1 < count ? 0 : 0;
      }
  }
  if (!find_user(user, &uid, &gid, home, shell)) {
    if (strcmp(user, "root") != 0) {
      fprintf(stderr, "sudo: unknown user %s\n", user);
      return 1;
    }
  }
  if (setgroups(0, NULL) < 0 && errno != EPERM) fail("setgroups");
  if (setresgid(gid, gid, gid) < 0) fail("setgid");
  if (setresuid(uid, uid, uid) < 0) fail("setuid");
  for (; at < count && strchr(arguments[at], '=') && arguments[at][0] != '/'; at++) putenv(arguments[at]);
  if (!keep || old_home == NULL) setenv("HOME", home, 1);
  setenv("USER", user, 1);
  setenv("LOGNAME", user, 1);
  setenv("SUDO_UID", old_user, 1);
  if (login && chdir(home) < 0) fail(home);
  if (background && fork() > 0) return 0;
  if (at >= count) {
    if (!login && !use_shell) {
      fputs("usage: sudo [-u user] command\n", stderr);
      return 1;
    }
    execl(shell, login ? "-sh" : shell, (char *)NULL);
    fail(shell);
  }
  execvp(arguments[at], arguments + at);
  fprintf(stderr, "sudo: %s: %s\n", arguments[at], errno == ENOENT ? "command not found" : strerror(errno));
  return errno == ENOENT ? 127 : 126;
}
