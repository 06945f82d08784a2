/* Ring of the most recent output of a background process, with the offset of each byte and its stream. */
#ifndef RING_H
#define RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define RING_MAX (1024 * 1024)

typedef struct {
  uint64_t offset;
  uint8_t stream;
} RingSegment;

typedef struct {
  uint8_t *data;
  size_t cap;
  uint64_t start, end; /* kept: [start, end) */
  RingSegment *segments;
  size_t seg_cap, seg_first, seg_len;
} Ring;

size_t ring_memory(void); /* bytes of all rings together */
/* Returns how many bytes may be added without losing any at or after `keep_from`; the ring grows first where that avoids a loss.
 * */
size_t ring_room(Ring *ring, uint64_t keep_from);
/* Adds at most `max` bytes from a descriptor, as read(2). `max` must be within ring_room(). */
ssize_t ring_read(Ring *ring, int fd, uint8_t stream, size_t max);
void ring_add(Ring *ring, uint8_t stream, const void *data, size_t len);
/* Copies bytes of one stream from `offset` on, which lies within [start, end). */
size_t ring_copy(const Ring *ring, uint64_t offset, uint8_t *to, size_t max, uint8_t *stream);
void ring_free(Ring *ring);

#endif
