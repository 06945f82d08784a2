/* Passes messages between the spawner's own processes, with descriptors. Also built into the preload library. */
#define _GNU_SOURCE
#include "../spawner.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

union room {
  char bytes[CMSG_SPACE(sizeof(int) * PASSED_MAX)];
  struct cmsghdr align;
};

/* Returns 0 when all of it was sent. */
int send_with(int socket, const void *bytes, size_t size, const int *fds, int count, int flags) {
  struct iovec part = {(void *)bytes, size};
  union room control = {0};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
  if (count > 0) {
    message.msg_control = &control;
    message.msg_controllen = CMSG_SPACE(sizeof(int) * (size_t)count);
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int) * (size_t)count);
    memcpy(CMSG_DATA(header), fds, sizeof(int) * (size_t)count);
  }
  return sendmsg(socket, &message, flags | MSG_NOSIGNAL) == (ssize_t)size ? 0 : -1;
}

/* Returns the bytes received; 0 or less when the other end is closed. Descriptors that did not come are -1. */
ssize_t receive_with(int socket, void *bytes, size_t size, int *fds, int most, int flags) {
  struct iovec part = {bytes, size};
  union room control;
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  for (int i = 0; i < most; i++) fds[i] = -1;
  ssize_t got = recvmsg(socket, &message, flags | MSG_CMSG_CLOEXEC);
  struct cmsghdr *header = got > 0 ? CMSG_FIRSTHDR(&message) : NULL;
  if (header == NULL || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) return got;
  int count = (int)((header->cmsg_len - CMSG_LEN(0)) / sizeof(int));
  memcpy(fds, CMSG_DATA(header), sizeof(int) * (size_t)(count < most ? count : most));
  return got;
}

/* Keeps only these descriptors, from 3 on in this order, in a process forked from the spawner; -1 stays -1. A forgotten copy of a
 * pipe or socket would keep its reader from ever seeing end-of-file. */
void keep_only(int *fds, int count) {
  for (int i = 0; i < count; i++)
    if (fds[i] >= 0) fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 3 + count);
  for (int i = 0; i < count; i++) {
    if (fds[i] < 0) close(3 + i);
    else fds[i] = dup2(fds[i], 3 + i);
  }
  close_range(3 + (unsigned)count, ~0u, 0);
}
