/* The duties of PID 1 in a fresh sandbox. */
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent.h"

#define MAX_READY_FDS 16

/* Closes descriptors inherited from the starting process: those inside belong to the sandbox. */
void init_begin(void) {
  int fd = open("/dev/null", O_RDWR);
  if (fd < 0) return;
  for (int i = 0; i < 3; i++) {
    if (fd != i) dup2(fd, i);
  }
  if (fd > 2) close(fd);
}

static bool loopback_up(void) {
  struct ifreq request = {.ifr_name = "lo"};
  int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  bool up = ioctl(fd, SIOCGIFFLAGS, &request) == 0;
  if (up && (request.ifr_flags & IFF_UP) == 0) {
    request.ifr_flags |= IFF_UP;
    up = ioctl(fd, SIOCSIFFLAGS, &request) == 0;
  }
  close(fd);
  return up;
}

/* Makes every address local: a connection to any address arrives at a listener here, or is refused at once. */
static bool add_local_route(int family) {
  struct {
    uint32_t length;
    uint16_t type, flags;
    uint32_t sequence, port;
    uint8_t family, dst_len, src_len, tos, table, protocol, scope, kind;
    uint32_t route_flags;
    uint16_t oif_length, oif_type;
    uint32_t oif;
  } request = {.length = sizeof request,
               .type = 24,             /* RTM_NEWROUTE */
               .flags = 1 | 4 | 0x400, /* REQUEST ACK CREATE */
               .family = (uint8_t)family,
               .table = 255,   /* local */
               .protocol = 3,  /* boot */
               .scope = family == AF_INET ? 254 : 0, /* host */
               .kind = 2,      /* local */
               .oif_length = 8,
               .oif_type = 4, /* RTA_OIF */
               .oif = if_nametoindex("lo")};
  struct {
    uint32_t length;
    uint16_t type, flags;
    uint32_t sequence, port;
    int32_t error;
    uint8_t rest[256];
  } reply = {0};
  int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  bool added = send(fd, &request, sizeof request, 0) == (ssize_t)sizeof request && recv(fd, &reply, sizeof reply, 0) >= 20 &&
               reply.type == 2 && (reply.error == 0 || reply.error == -EEXIST);
  close(fd);
  return added;
}

bool init_network(bool any_ip) {
  bool up = loopback_up();
  if (!any_ip) return up;
  bool four = add_local_route(AF_INET);
  (void)add_local_route(AF_INET6); /* there may be no IPv6 */
  return up && four;
}

/* Reads the confirmation that the starting process has recorded the agent durably: without a record no later process would find
 * it. */
static void starter_ready(Io *io, uint32_t events) {
  char word;
  (void)events;
  ssize_t got = recv(io->fd, &word, sizeof word, MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) _exit(1);
  io_close(io);
}

/* "READY 1 <listeners>", with the listening sockets of the command line beside it. */
void report_ready(int fd) {
  static Io starter;
  int type = 0, fds[MAX_READY_FDS];
  socklen_t size = sizeof type;
  if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) != 0 || type != SOCK_SEQPACKET) return;
  size_t n = boot_listeners(fds, MAX_READY_FDS);
  char text[32];
  int len = snprintf(text, sizeof text, "READY %d %zu", PROTOCOL_VERSION, n);
  struct iovec part = {.iov_base = text, .iov_len = (size_t)len};
  union {
    struct cmsghdr header;
    char space[CMSG_SPACE(MAX_READY_FDS * sizeof(int))];
  } control = {0};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
  if (n > 0) {
    message.msg_control = &control;
    message.msg_controllen = CMSG_SPACE(n * sizeof(int));
    struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(n * sizeof(int));
    memcpy(CMSG_DATA(rights), fds, n * sizeof(int));
  }
  /* The starting process has closed its end of the socket. */
  if (sendmsg(fd, &message, MSG_NOSIGNAL) < 0) _exit(1);
  (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
  if (!io_open(&starter, fd, EPOLLIN | EPOLLRDHUP, starter_ready)) _exit(1);
}
