#include "ring.h"

#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#define RING_MIN (16 * 1024)
#define ALL_RINGS (64 * 1024 * 1024)
#define MAX_SEGMENTS 8192

static size_t memory;

size_t ring_memory(void) { return memory; }

/* Resizes the ring; cap is a power of two. */
static void resize(Ring *ring, size_t cap) {
  uint8_t *data = malloc(cap);
  if (data == NULL) return;
  for (uint64_t at = ring->start; at < ring->end;) {
    size_t from = at & (ring->cap - 1), to = at & (cap - 1), n = ring->end - at;
    if (n > ring->cap - from) n = ring->cap - from;
    if (n > cap - to) n = cap - to;
    memcpy(data + to, ring->data + from, n);
    at += n;
  }
  free(ring->data);
  memory += cap - ring->cap;
  ring->data = data;
  ring->cap = cap;
}

static bool grow(Ring *ring) {
  size_t cap = ring->cap == 0 ? RING_MIN : ring->cap * 2;
  if (cap > RING_MAX || memory + cap - ring->cap > ALL_RINGS) return false;
  resize(ring, cap);
  return ring->cap == cap;
}

static RingSegment *segment(const Ring *ring, size_t i) {
  return &ring->segments[(ring->seg_first + i) % ring->seg_cap];
}

static uint64_t segment_end(const Ring *ring, size_t i) {
  return i + 1 < ring->seg_len ? segment(ring, i + 1)->offset : ring->end;
}

static bool grow_segments(Ring *ring) {
  size_t cap = ring->seg_cap == 0 ? 16 : ring->seg_cap * 2;
  RingSegment *grown = cap > MAX_SEGMENTS ? NULL : malloc(cap * sizeof *grown);
  if (grown == NULL) return false;
  for (size_t i = 0; i < ring->seg_len; i++) grown[i] = *segment(ring, i);
  free(ring->segments);
  ring->segments = grown;
  ring->seg_cap = cap;
  ring->seg_first = 0;
  return true;
}

static void drop_until(Ring *ring, uint64_t start) {
  if (start > ring->start) ring->start = start;
  while (ring->seg_len > 0 && segment_end(ring, 0) <= ring->start) {
    ring->seg_first = (ring->seg_first + 1) % ring->seg_cap;
    ring->seg_len--;
  }
}

size_t ring_room(Ring *ring, uint64_t keep_from) {
  if (keep_from < ring->start) keep_from = ring->start;
  while (ring->end - ring->start >= ring->cap / 2 && grow(ring)) continue;
  if (ring->seg_len == ring->seg_cap && !grow_segments(ring)) {
    /* Many short segments of alternating streams fill the table: the oldest segment is dropped. */
    if (ring->seg_cap == 0 || keep_from < segment_end(ring, 0)) return 0;
    drop_until(ring, segment_end(ring, 0));
  }
  return ring->cap - (size_t)(ring->end - keep_from);
}

static void added(Ring *ring, uint8_t stream, size_t len) {
  if (ring->seg_len == 0 || segment(ring, ring->seg_len - 1)->stream != stream) {
    ring->seg_len++;
    *segment(ring, ring->seg_len - 1) = (RingSegment){.offset = ring->end, .stream = stream};
  }
  ring->end += len;
  if (ring->end - ring->start > ring->cap) drop_until(ring, ring->end - ring->cap);
}

ssize_t ring_read(Ring *ring, int fd, uint8_t stream, size_t max) {
  size_t at = ring->end & (ring->cap - 1), first = ring->cap - at;
  if (first > max) first = max;
  struct iovec parts[2] = {{ring->data + at, first}, {ring->data, max - first}};
  ssize_t n = readv(fd, parts, max > first ? 2 : 1);
  if (n > 0) added(ring, stream, (size_t)n);
  return n;
}

void ring_add(Ring *ring, uint8_t stream, const void *data, size_t len) {
  size_t room = ring_room(ring, ring->end);
  if (len > room) len = room;
  if (len == 0) return;
  size_t at = ring->end & (ring->cap - 1), first = ring->cap - at < len ? ring->cap - at : len;
  memcpy(ring->data + at, data, first);
  memcpy(ring->data, (const uint8_t *)data + first, len - first);
  added(ring, stream, len);
}

size_t ring_copy(const Ring *ring, uint64_t offset, uint8_t *to, size_t max, uint8_t *stream) {
  size_t low = 0, high = ring->seg_len - 1;
  while (low < high) {
    size_t middle = (low + high + 1) / 2;
    if (segment(ring, middle)->offset <= offset) low = middle;
    else high = middle - 1;
  }
  uint64_t end = segment_end(ring, low);
  size_t len = end - offset < max ? (size_t)(end - offset) : max;
  size_t at = offset & (ring->cap - 1), first = ring->cap - at < len ? ring->cap - at : len;
  memcpy(to, ring->data + at, first);
  memcpy(to + first, ring->data, len - first);
  *stream = segment(ring, low)->stream;
  return len;
}

void ring_free(Ring *ring) {
  memory -= ring->cap;
  free(ring->data);
  free(ring->segments);
  *ring = (Ring){0};
}
