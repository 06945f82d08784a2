/* Attempts of the probe with sockets. */
#define _GNU_SOURCE
#include "probe.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

/* Also EINVAL says that there is no such socket. */
long try_socket(int family, int type, int protocol) {
  int fd = socket(family, type, protocol);
  if (fd < 0 && errno == EINVAL) errno = EPROTONOSUPPORT;
  return fd;
}

long try_connect_path(const char *path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
  int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  return fd < 0 ? -1 : connect(fd, (struct sockaddr *)&address, sizeof address);
}

long try_connect_abstract(const char *name) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "%s", name);
  int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  return fd < 0 ? -1 : connect(fd, (struct sockaddr *)&address, (socklen_t)(sizeof(sa_family_t) + 1 + strlen(name)));
}

long try_connect_tcp(int port) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  struct timeval patience = {2, 0};
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  return fd < 0 ? -1 : connect(fd, (struct sockaddr *)&address, sizeof address);
}
