/* Volumes: directories that outlive sandboxes. They lie in the stored range of ids, and every sandbox sees them through its own:
 * uid 1000 inside one sandbox is uid 1000 inside all. A volume of limited size is a file system of its own. */
#define _GNU_SOURCE
#include "../spawner.h"

#include <errno.h>
#include <linux/mount.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIRST_USER 1000u

static bool plain(const char *name, size_t length) {
  return length > 0 && length < VOLUME_NAME_MAX &&
         strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") >= length;
}

/* Parses "vol_a:vol_b,ro", in the order in which they are numbered. */
bool read_volumes(const struct fields *fields, struct launch *launch) {
  const char *list = field(fields, "volumes");
  while (list && *list) {
    size_t length = strcspn(list, ":,");
    if (launch->volume_count == VOLUMES_MAX || !plain(list, length)) return false;
    memcpy(launch->volumes[launch->volume_count], list, length);
    list += length;
    bool read_only = strncmp(list, ",ro", 3) == 0;
    launch->read_only[launch->volume_count++] = read_only;
    if (read_only) list += 3;
    if (*list == ',') return false;
    list += *list == ':';
  }
  return true;
}

/* Makes the top open to every user inside: access is decided by which sandboxes mount the volume. */
static int make_top(const char *path) {
  uint32_t owner = settings.storage > 0 ? settings.storage + FIRST_USER : 0;
  if (mkdir(path, 0777) < 0) return errno == EEXIST ? 0 : -1;
  return chown(path, owner, owner) < 0 || chmod(path, 0777) < 0 ? -1 : 0;
}

/* Attaches volumes as v0, v1 … in the current directory. Returns the one that failed, or NULL. */
const char *mount_volumes(const struct launch *launch, int userns) {
  for (int i = 0; i < launch->volume_count; i++) {
    char source[PATH_MAX + 128], name[16], disk[16], top[24];
    snprintf(source, sizeof source, "%s/volumes/%s/image", settings.base, launch->volumes[i]);
    snprintf(name, sizeof name, "v%d", i);
    if (mkdir(name, 0700) < 0 && errno != EEXIST) return launch->volumes[i];
    if (access(source, F_OK) == 0) {
      snprintf(disk, sizeof disk, "w%d", i);
      snprintf(top, sizeof top, "w%d/fs", i);
      if (mkdir(disk, 0700) < 0 && errno != EEXIST) return launch->volumes[i];
      if (disk_mount(source, disk) < 0 || make_top(top) < 0) return launch->volumes[i];
      snprintf(source, sizeof source, "%s", top);
    } else snprintf(source, sizeof source, "%s/volumes/%s/fs", settings.base, launch->volumes[i]);
    /* Set here and not by the runtime: flags of a mount that enters a lesser user namespace cannot be loosened there. */
    uint64_t attributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | (launch->read_only[i] ? MOUNT_ATTR_RDONLY : 0);
    if (attach_with(source, name, userns, attributes) < 0) return launch->volumes[i];
  }
  return NULL;
}

void do_volume(const struct request *request, const struct fields *fields) {
  char path[PATH_MAX + 128], from[PATH_MAX + 300];
  const char *id = field(fields, "id"), *blank = field(fields, "disk");
  if (id == NULL || !plain(id, strlen(id))) return answer_error(request, "invalid", "id");
  if (blank && (strncmp(blank, "disks/", 6) != 0 || strstr(blank, "..") || strlen(blank) > 200))
    return answer_error(request, "invalid", "disk");
  snprintf(path, sizeof path, "%s/volumes", settings.base);
  if (mkdir(path, 0700) < 0 && errno != EEXIST) return answer_error(request, "volume", "%s", strerror(errno));
  snprintf(path, sizeof path, "%s/volumes/%s", settings.base, id);
  if (mkdir(path, 0700) < 0 && errno != EEXIST) return answer_error(request, "volume", "%s", strerror(errno));
  snprintf(path, sizeof path, "%s/volumes/%s/%s", settings.base, id, blank ? "image" : "fs");
  if (blank) snprintf(from, sizeof from, "%s/%s", settings.base, blank);
  if (blank ? access(path, F_OK) < 0 && file_copy(from, path) < 0 : make_top(path) < 0)
    return answer_error(request, "volume", "%s", strerror(errno));
  answer_ok(request, "%s", "");
}
