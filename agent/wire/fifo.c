#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conn.h"

bool fifo_push(Fifo *f, const uint8_t *data, size_t len) {
  if (f->cap - f->head - f->len < len) {
    if (f->head > 0) memmove(f->data, f->data + f->head, f->len);
    f->head = 0;
    size_t cap = f->cap == 0 ? 4096 : f->cap;
    while (cap - f->len < len) cap *= 2;
    if (cap != f->cap) {
      uint8_t *grown = realloc(f->data, cap);
      if (grown == NULL) return false;
      f->data = grown;
      f->cap = cap;
    }
  }
  memcpy(f->data + f->head + f->len, data, len);
  f->len += len;
  return true;
}

size_t fifo_flush(Fifo *f, int fd, bool *broken) {
  size_t written = 0;
  while (f->len > 0) {
    ssize_t n = write(fd, f->data + f->head, f->len);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno != EAGAIN) *broken = true;
    if (n <= 0) break;
    f->head += (size_t)n;
    f->len -= (size_t)n;
    written += (size_t)n;
  }
  if (f->len == 0) fifo_clear(f);
  return written;
}

void fifo_clear(Fifo *f) {
  free(f->data);
  *f = (Fifo){0};
}
