/* Control socket: the mode of its directory decides which users may connect. One request is one line. */
#define _GNU_SOURCE
#include "spawner.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define CLIENTS_MAX 64

struct client {
  int fd; /* 0: free */
  unsigned generation;
  size_t length;
  char buffer[LINE_MAX_BYTES];
};
static struct client clients[CLIENTS_MAX];
static int listener = -1;

static void drop(struct client *client) {
  unwatch_fd(client->fd);
  close(client->fd);
  captures_forsaken((int)(client - clients));
  client->fd = 0;
  client->generation++;
  consider_leaving();
}

/* Sends a line; a client that does not read its answers is dropped rather than waited for. */
static void send_line(struct client *client, const char *line, size_t length) {
  ssize_t sent = send(client->fd, line, length, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent == (ssize_t)length) return;
  shutdown(client->fd, SHUT_RDWR);
}

static void answer(const struct request *request, const char *format, va_list list) {
  char line[LINE_MAX_BYTES];
  if (request->client < 0 || request->seq[0] == 0) return;
  struct client *client = &clients[request->client];
  if (client->fd == 0 || client->generation != request->generation) return;
  size_t size = sizeof line - 1;
  size_t length = (size_t)snprintf(line, size, "%s\t", request->seq);
  length += (size_t)vsnprintf(line + length, size - length, format, list);
  if (length > size - 1) length = size - 1;
  for (size_t i = 0; i < length; i++)
    if (line[i] == '\n') line[i] = ' ';
  line[length++] = '\n';
  send_line(client, line, length);
}

static void __attribute__((format(printf, 2, 3))) answer_words(const struct request *request, const char *format, ...) {
  va_list list;
  va_start(list, format);
  answer(request, format, list);
  va_end(list);
}

void answer_ok(const struct request *request, const char *format, ...) {
  char text[LINE_MAX_BYTES - 64];
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  answer_words(request, "ok%s", text);
}

void answer_error(const struct request *request, const char *code, const char *format, ...) {
  char text[2048];
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  for (char *at = text; *at; at++)
    if (*at == '\t' || *at == '\n' || *at == '\r') *at = ' ';
  answer_words(request, "error\tcode=%s\tdetail=%s", code, text);
}

/* Sends an event to all clients: a line whose sequence number is 0. */
void tell_all(const char *format, ...) {
  char line[1024] = "0\t";
  va_list list;
  va_start(list, format);
  int length = 2 + vsnprintf(line + 2, sizeof line - 3, format, list);
  va_end(list);
  if (length > (int)sizeof line - 2) return;
  line[length++] = '\n';
  for (int i = 0; i < CLIENTS_MAX; i++)
    if (clients[i].fd > 0) send_line(&clients[i], line, (size_t)length);
}

const char *field(const struct fields *fields, const char *key) {
  for (int i = 0; i < fields->count; i++)
    if (strcmp(fields->key[i], key) == 0) return fields->value[i];
  return NULL;
}

long long number(const struct fields *fields, const char *key, long long otherwise) {
  const char *value = field(fields, key);
  return value == NULL || value[0] == 0 ? otherwise : atoll(value);
}

static void hello(const struct request *request) {
  answer_ok(request, "\tprotocol=%d\tbuild=%s\tpid=%d\tcgroups=%s\tidmap=%d\trootless=%d\tstorage=%u\tsandboxes=%d\tagent=%s",
            SPAWNER_PROTOCOL, settings.build, getpid(), cgroups_describe(), settings.idmap, settings.usermap[0] != 0,
            settings.storage, sandboxes_count(), settings.agent);
}

/* Returns whether a name lies below the base, without "..". */
static bool ours(const char *name) {
  return name && name[0] && name[0] != '/' && strstr(name, "..") == NULL && strchr(name, '/') != NULL;
}

/* Sets the owner of a skeleton that the caller wrote: only the spawner has the right to. */
static void own(const struct request *request, const struct fields *fields) {
  const char *name = field(fields, "path");
  char path[PATH_MAX + 512], part[PATH_MAX + 600];
  if (!ours(name)) return answer_error(request, "refused", "not a path of ours");
  snprintf(path, sizeof path, "%s/%s", settings.base, name);
  if (tree_own(path, settings.storage) < 0) return answer_error(request, "own", "%s", strerror(errno));
  snprintf(part, sizeof part, "%s/home/user", path);
  /* With a single id there is no other owner to set. */
  if (settings.storage > 0 && tree_own(part, settings.storage + 1000) < 0 && errno != ENOENT)
    return answer_error(request, "own", "%s", strerror(errno));
  snprintf(part, sizeof part, "%s/opt/sandboxer/bin/sudo", path);
  if (chmod(part, 04755) < 0 && errno != ENOENT) return answer_error(request, "own", "%s", strerror(errno));
  answer_ok(request, "%s", "");
}

static void discard(const struct request *request, const struct fields *fields) {
  const char *name = field(fields, "path");
  char path[PATH_MAX + 512];
  if (!ours(name)) return answer_error(request, "refused", "not a path of ours");
  snprintf(path, sizeof path, "%s/%s", settings.base, name);
  janitor_discard(path);
  answer_ok(request, "%s", "");
}

static void perform(const struct request *request, const char *verb, const struct fields *fields) {
  if (strcmp(verb, "hello") == 0) hello(request);
  else if (strcmp(verb, "create") == 0) do_create(request, fields);
  else if (strcmp(verb, "destroy") == 0) do_destroy(request, fields);
  else if (strcmp(verb, "freeze") == 0) do_freeze(request, fields, true);
  else if (strcmp(verb, "thaw") == 0) do_freeze(request, fields, false);
  else if (strcmp(verb, "extend") == 0) do_extend(request, fields);
  else if (strcmp(verb, "status") == 0) do_status(request, fields);
  else if (strcmp(verb, "inspect") == 0) do_inspect(request, fields);
  else if (strcmp(verb, "capture") == 0) do_capture(request, fields);
  else if (strcmp(verb, "pack") == 0) do_pack(request, fields);
  else if (strcmp(verb, "flatten") == 0) do_flatten(request, fields);
  else if (strcmp(verb, "unpack") == 0) do_unpack(request, fields);
  else if (strcmp(verb, "measure") == 0) do_measure(request, fields);
  else if (strcmp(verb, "flush") == 0) do_flush(request);
  else if (strcmp(verb, "list") == 0) do_list(request);
  else if (strcmp(verb, "claim") == 0) do_claim(request, fields);
  else if (strcmp(verb, "volume") == 0) do_volume(request, fields);
  else if (strcmp(verb, "own") == 0) own(request, fields);
  else if (strcmp(verb, "discard") == 0) discard(request, fields);
  else if (strcmp(verb, "retire") == 0) {
    /* Leaves, to make room for another build; sandboxes go on and the next spawner adopts them. */
    answer_ok(request, "%s", "");
    leaving = true;
  } else answer_error(request, "unknown", "no verb \"%s\"", verb);
}

static void take_line(struct client *client, char *line) {
  struct request request = {.client = (int)(client - clients), .generation = client->generation};
  struct fields fields = {0};
  char *rest = line, *seq = strsep(&rest, "\t"), *verb = strsep(&rest, "\t");
  if (seq == NULL || verb == NULL || strlen(seq) >= sizeof request.seq) return;
  strcpy(request.seq, seq);
  for (char *part; rest && (part = strsep(&rest, "\t")) != NULL && fields.count < FIELDS_MAX;) {
    char *equals = strchr(part, '=');
    if (equals == NULL) continue;
    *equals = 0;
    fields.key[fields.count] = part;
    fields.value[fields.count++] = equals + 1;
  }
  perform(&request, verb, &fields);
}

static void readable(void *context, uint32_t events) {
  struct client *client = context;
  (void)events;
  ssize_t got = recv(client->fd, client->buffer + client->length, sizeof client->buffer - client->length, MSG_DONTWAIT);
  if (got < 0 && errno == EAGAIN) return;
  if (got <= 0) return drop(client);
  client->length += (size_t)got;
  unsigned generation = client->generation;
  for (char *end; (end = memchr(client->buffer, '\n', client->length)) != NULL;) {
    char line[LINE_MAX_BYTES];
    size_t length = (size_t)(end - client->buffer);
    memcpy(line, client->buffer, length);
    line[length] = 0;
    client->length -= length + 1;
    memmove(client->buffer, end + 1, client->length);
    take_line(client, line);
    if (client->generation != generation) return;
  }
  if (client->length == sizeof client->buffer) drop(client);
}

static void accept_client(void *context, uint32_t events) {
  (void)context;
  (void)events;
  int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0) return;
  for (int i = 0; i < CLIENTS_MAX; i++) {
    if (clients[i].fd != 0) continue;
    clients[i].fd = fd;
    clients[i].length = 0;
    watch_fd(fd, EPOLLIN, readable, &clients[i]);
    return;
  }
  close(fd);
}

int count_clients(void) {
  int count = 0;
  for (int i = 0; i < CLIENTS_MAX; i++) count += clients[i].fd > 0;
  return count;
}

void open_control(void) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  char path[PATH_MAX + 32];
  int directory = open(settings.base, O_PATH | O_DIRECTORY | O_CLOEXEC);
  snprintf(path, sizeof path, "%s/spawner.sock", settings.base);
  unlink(path);
  snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/spawner.sock", directory);
  listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  mode_t mask = umask(0177);
  if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof address) < 0 || listen(listener, 64) < 0) {
    say("cannot listen at %s: %s", path, strerror(errno));
    exit(1);
  }
  umask(mask);
  close(directory);
  watch_fd(listener, EPOLLIN, accept_client, NULL);
}

/* Closes the control socket: from here on a client is refused at once and starts the next spawner. */
void close_control(void) {
  unwatch_fd(listener);
  close(listener);
  for (int i = 0; i < CLIENTS_MAX; i++)
    if (clients[i].fd > 0) shutdown(clients[i].fd, SHUT_RDWR);
}
