/* Table of sandboxes by id, and the paths of their directories. */
#define _GNU_SOURCE
#include "sandbox.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sandbox *table[BUCKETS];

struct sandbox **place_of(const char *id) {
  unsigned hash = 5381;
  for (const char *at = id; *at; at++) hash = hash * 33 + (unsigned char)*at;
  struct sandbox **place = &table[hash % BUCKETS];
  while (*place && strcmp((*place)->id, id) != 0) place = &(*place)->next;
  return place;
}

struct sandbox *sandbox_add(const char *id) {
  struct sandbox **place = place_of(id);
  struct sandbox *sandbox = calloc(1, sizeof *sandbox);
  if (sandbox == NULL) return NULL;
  snprintf(sandbox->id, sizeof sandbox->id, "%s", id);
  snprintf(sandbox->container, sizeof sandbox->container, "%s", id);
  sandbox->pidfd = sandbox->boot = sandbox->error_fd = sandbox->mounts = -1;
  sandbox->used = (struct use){-1, -1};
  sandbox->disk.limit = sandbox->disk.used.bytes = -1;
  *place = sandbox;
  return sandbox;
}

void sandbox_forget(struct sandbox *sandbox) {
  struct sandbox **place = place_of(sandbox->id);
  *place = sandbox->next;
  free(sandbox);
  consider_leaving();
}

/* Returns the id of a request, if it is valid as a name of a directory and of a container. */
const char *id_of(const struct fields *fields) {
  const char *id = field(fields, "id");
  if (id == NULL || id[0] == 0 || id[0] == '.' || strlen(id) >= ID_MAX) return NULL;
  size_t plain = strspn(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-");
  return id[plain] == 0 ? id : NULL;
}

void path_of(const char *id, const char *name, char *path, size_t size) {
  snprintf(path, size, "%s/sandboxes/%s%s%s", settings.base, id, name[0] ? "/" : "", name);
}
