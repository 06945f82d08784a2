#include "protocol.h"

#include <string.h>

static const uint8_t *take(Cursor *c, size_t n) {
  if (c->bad || (size_t)(c->end - c->at) < n) {
    c->bad = true;
    return NULL;
  }
  const uint8_t *p = c->at;
  c->at += n;
  return p;
}

static uint64_t take_number(Cursor *c, size_t n) {
  const uint8_t *p = take(c, n);
  uint64_t v = 0;
  if (p == NULL) return 0;
  for (size_t i = n; i > 0; i--) v = v << 8 | p[i - 1];
  return v;
}

uint8_t take_u8(Cursor *c) { return (uint8_t)take_number(c, 1); }
uint16_t take_u16(Cursor *c) { return (uint16_t)take_number(c, 2); }
uint32_t take_u32(Cursor *c) { return (uint32_t)take_number(c, 4); }
uint64_t take_u64(Cursor *c) { return take_number(c, 8); }

const char *take_str(Cursor *c) {
  uint32_t len = take_u32(c);
  if (len >= MAX_REQUEST) c->bad = true;
  const uint8_t *p = take(c, (size_t)len + 1);
  if (p == NULL || p[len] != 0 || memchr(p, 0, len) != NULL) {
    c->bad = true;
    return "";
  }
  return (const char *)p;
}

bool take_end(Cursor *c) { return !c->bad && c->at == c->end; }

void put_bytes(Builder *b, const void *data, size_t len) {
  if (b->bad || b->cap - b->len < len) {
    b->bad = true;
    return;
  }
  if (len > 0) memcpy(b->data + b->len, data, len);
  b->len += len;
}

static void put_number(Builder *b, uint64_t v, size_t n) {
  uint8_t bytes[8];
  for (size_t i = 0; i < n; i++) bytes[i] = (uint8_t)(v >> (8 * i));
  put_bytes(b, bytes, n);
}

void put_u8(Builder *b, uint8_t v) { put_number(b, v, 1); }
void put_u16(Builder *b, uint16_t v) { put_number(b, v, 2); }
void put_u32(Builder *b, uint32_t v) { put_number(b, v, 4); }
void put_u64(Builder *b, uint64_t v) { put_number(b, v, 8); }

void put_str(Builder *b, const char *s) {
  size_t len = strlen(s);
  put_u32(b, (uint32_t)len);
  put_bytes(b, s, len + 1);
}

void write_header(uint8_t *to, uint32_t length, uint16_t type, uint32_t channel) {
  Builder b = {.data = to, .cap = HEADER_BYTES};
  put_u32(&b, length);
  put_u16(&b, type);
  put_u32(&b, channel);
}

void read_header(const uint8_t *from, uint32_t *length, uint16_t *type, uint32_t *channel) {
  Cursor c = {.at = from, .end = from + HEADER_BYTES};
  *length = take_u32(&c);
  *type = take_u16(&c);
  *channel = take_u32(&c);
}
