/* Connections of hosts, their channels, and the credit that bounds what is under way on each. */
#ifndef CONN_H
#define CONN_H

#include <stdarg.h>

#include "loop.h"
#include "protocol.h"

typedef struct Conn Conn;
typedef struct Channel Channel;

typedef struct {
  /* Puts at most one bulk frame out. True when there is more to come and credit left for it. */
  bool (*pull)(Channel *ch);
  /* Input from the host. Give the credit back by channel_consumed(). */
  void (*data)(Channel *ch, const uint8_t *data, size_t len);
  void (*eof)(Channel *ch);
  void (*signal)(Channel *ch, int signo);
  void (*resize)(Channel *ch, unsigned cols, unsigned rows);
  /* The host closed it or is gone: let go of everything but the channel itself. */
  void (*gone)(Channel *ch);
} ChannelOps;

/* The first member of whatever it serves. */
struct Channel {
  Conn *conn;
  const ChannelOps *ops;
  Channel *next_in_bucket;
  Channel *next_runnable;
  uint32_t id;
  uint32_t send_window; /* what the host lets us send */
  uint32_t recv_window; /* what the host may still send */
  uint32_t consumed;    /* input that was used and not yet given back as credit */
  bool runnable;
};

#define CHANNEL_BUCKETS 64

struct Conn {
  Io in, out; /* the same socket: only `in` is open */
  Task pump;
  Conn *next, *prev;
  Channel *buckets[CHANNEL_BUCKETS];
  Channel *run_first, *run_last;
  uint8_t *rx, *tx, *part;
  size_t rx_len, tx_head, tx_tail, tx_cap, part_len;
  uint32_t part_channel, channels, next_agent_channel;
  char *user, *cwd; /* this host's defaults; NULL: the agent's */
  bool stdio, greeted, dead, readable, writable, hung_up;
  bool wants_room; /* room to write is waited for */
};

bool conn_open(int in_fd, int out_fd); /* takes the fds over, also on failure */
void conn_listen(int fd, bool check_peer);
size_t conn_count(void);

/* A frame that costs no credit. The host's requests bound how many there are. */
void conn_send(Conn *c, uint16_t type, uint32_t channel, const void *payload, size_t len);
bool conn_send_fd(Conn *c, uint16_t type, uint32_t channel, const void *payload, size_t len, int fd);
void conn_fail(Conn *c); /* a violation: the connection ends, the agent goes on */

void send_error(Conn *c, uint32_t channel, int kind, int err, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
void send_errno(Conn *c, uint32_t channel, int err); /* of an operation on files */

/* NULL, after an answer to the host, when there are too many or no memory. `size` bytes, zeroed. */
void *channel_open(Conn *c, uint32_t id, size_t size, const ChannelOps *ops, uint32_t send_window);
Channel *channel_find(Conn *c, uint32_t id);
void channel_end(Channel *ch); /* after its last frame; its memory lives on until the turn is over */
void channel_wake(Channel *ch); /* pull() may have something */
void channel_consumed(Channel *ch, size_t bytes);

uint8_t *bulk_begin(Channel *ch, size_t *room); /* NULL without credit or memory */
void bulk_commit(Channel *ch, uint16_t type, size_t len);

/* Bytes on their way to a descriptor that takes them when it likes. */
typedef struct {
  uint8_t *data;
  size_t head, len, cap;
} Fifo;

bool fifo_push(Fifo *f, const uint8_t *data, size_t len);
/* Writes what it can. Returns what was written; *broken when the other side will take no more. */
size_t fifo_flush(Fifo *f, int fd, bool *broken);
void fifo_clear(Fifo *f);

/* request.c */
void request_dispatch(Conn *c, uint16_t type, uint32_t channel, Cursor *request);

#endif
