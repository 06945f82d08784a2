/* The wire protocol: see README.md. All numbers are little-endian; a string is u32 length, bytes, and a NUL that is not counted.
 * */
#ifndef PROTOCOL_H
#define PROTOCOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROTOCOL_MAGIC "SBXAGENT"
#define PROTOCOL_VERSION 1
#define HEADER_BYTES 10
#define MAX_PAYLOAD (256 * 1024)
#define MAX_REQUEST (4 * 1024 * 1024) /* a request that was sent in parts */
#define MAX_BULK (128 * 1024)         /* the most that this agent puts into one flow-controlled frame */
#define MIN_COST 256                  /* a flow-controlled frame costs at least this much credit */
#define INPUT_WINDOW (512 * 1024)     /* credit the host starts with on each channel */
#define MAX_WINDOW (64 * 1024 * 1024)
#define MAX_LIST_FRAME (32 * 1024)
#define AGENT_CHANNEL 0x80000000u /* channels opened by the agent have this bit */

enum {
  /* host to agent */
  T_HELLO = 0x01,
  T_PING = 0x02,
  T_PART = 0x03,
  T_SPAWN = 0x10,
  T_ATTACH = 0x11,
  T_PROCESSES = 0x12,
  T_STAT = 0x20,
  T_LIST = 0x21,
  T_READ = 0x22,
  T_WRITE = 0x23,
  T_MKDIR = 0x24,
  T_MOVE = 0x25,
  T_REMOVE = 0x26,
  T_WATCH = 0x27,
  T_UNPACK = 0x28,
  T_PACK = 0x29,
  T_DIAL = 0x30,
  T_LISTEN = 0x31,
  T_HANDOUT = 0x32,
  /* both ways, inside a channel */
  T_DATA = 0x40,
  T_EOF = 0x41,
  T_WINDOW = 0x42,
  /* host to agent, inside a channel */
  T_SIGNAL = 0x43,
  T_RESIZE = 0x44,
  T_CLOSE = 0x45,
  /* agent to host */
  T_WELCOME = 0x81,
  T_PONG = 0x82,
  T_STARTED = 0xa0,
  T_STDOUT = 0xa1,
  T_STDERR = 0xa2,
  T_TERMINAL = 0xa3,
  T_GAP = 0xa4,
  T_EXIT = 0xa5,
  T_RESULT = 0xb0,
  T_ERROR = 0xb1,
  T_OPENED = 0xb2,
  T_ENTRIES = 0xb3,
  T_CHANGES = 0xb4,
  T_ACCEPTED = 0xb5,
  T_CLOSED = 0xc0
};

/* Kinds of T_ERROR. */
enum {
  E_NOT_FOUND = 1,
  E_REFUSED = 2,
  E_NO_PROCESS = 3,
  E_INVALID = 4,
  E_UNSUPPORTED = 5,
  E_FAILED = 6,
  E_LIMIT = 7,
  E_CONNECT = 8,
  E_USER = 9,
  E_CWD = 10
};

/* Bits of T_WELCOME. */
enum { F_INIT = 1, F_ROOT = 2, F_PTY = 4, F_WATCH = 8, F_HANDOUT = 16 };

/* Reads a payload; a read beyond its end returns zero and sets `bad`. */
typedef struct {
  const uint8_t *at, *end;
  bool bad;
} Cursor;

uint8_t take_u8(Cursor *c);
uint16_t take_u16(Cursor *c);
uint32_t take_u32(Cursor *c);
uint64_t take_u64(Cursor *c);
const char *take_str(Cursor *c); /* "" when bad */
bool take_end(Cursor *c);        /* all was read and nothing was bad */

/* Writes into memory of a fixed size; data that does not fit sets `bad`. */
typedef struct {
  uint8_t *data;
  size_t len, cap;
  bool bad;
} Builder;

void put_u8(Builder *b, uint8_t v);
void put_u16(Builder *b, uint16_t v);
void put_u32(Builder *b, uint32_t v);
void put_u64(Builder *b, uint64_t v);
void put_bytes(Builder *b, const void *data, size_t len);
void put_str(Builder *b, const char *s);

void write_header(uint8_t *to, uint32_t length, uint16_t type, uint32_t channel);
void read_header(const uint8_t *from, uint32_t *length, uint16_t *type, uint32_t *channel);

#endif
