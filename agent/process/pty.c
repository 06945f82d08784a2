#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include "../agent.h"

#ifndef TIOCGPTPEER
#define TIOCGPTPEER 0x5441
#endif

void pty_resize(int master, unsigned cols, unsigned rows) {
  struct winsize size = {.ws_col = (unsigned short)cols, .ws_row = (unsigned short)rows};
  (void)ioctl(master, TIOCSWINSZ, &size);
}

/* Opens the slave end by ioctl, not by name: this needs no /dev/pts at the right place and no group. */
static int open_slave(int master) {
  int unlock = 0;
  unsigned n;
  if (ioctl(master, TIOCSPTLCK, &unlock) != 0) return -1;
  int slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (slave >= 0 || ioctl(master, TIOCGPTN, &n) != 0) return slave;
  char path[32];
  snprintf(path, sizeof path, "/dev/pts/%u", n);
  return open(path, O_RDWR | O_NOCTTY | O_CLOEXEC);
}

int pty_open(int *slave, unsigned cols, unsigned rows, const Cred *owner) {
  int master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (master < 0) master = open("/dev/pts/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (master < 0) return -1;
  *slave = open_slave(master);
  if (*slave < 0) {
    int error = errno;
    close(master);
    errno = error;
    return -1;
  }
  if (agent.privileged && (fchown(*slave, owner->uid, (gid_t)-1) != 0 || fchmod(*slave, 0620) != 0)) errno = 0;
  struct termios mode;
  if (tcgetattr(*slave, &mode) == 0) {
    mode.c_iflag |= IUTF8;
    (void)tcsetattr(*slave, TCSANOW, &mode);
  }
  pty_resize(master, cols, rows);
  return master;
}
