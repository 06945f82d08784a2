/* Connections of hosts, their channels, and the credit that bounds the bytes under way on each. */
#ifndef CONN_H
#define CONN_H

#include <stdarg.h>

#include "loop.h"
#include "protocol.h"

typedef struct Conn Conn;
typedef struct Channel Channel;

typedef struct {
  /* Sends at most one bulk frame. Returns true when there is more to send and credit left for it. */
  bool (*pull)(Channel *ch);
  /* Takes input from the host. Give the credit back by channel_consumed(). */
  void (*data)(Channel *ch, const uint8_t *data, size_t len);
  void (*eof)(Channel *ch);
  void (*signal)(Channel *ch, int signo);
  void (*resize)(Channel *ch, unsigned cols, unsigned rows);
  /* Called when the host closed the channel or is gone: release everything but the channel itself. */
  void (*gone)(Channel *ch);
} ChannelOps;

/* A channel is the first member of the struct that it serves. */
struct Channel {
  Conn *conn;
  const ChannelOps *ops;
  Channel *next_in_bucket;
  Channel *next_runnable;
  uint32_t id;
  uint32_t send_window; /* credit for sending, from the host */
  uint32_t recv_window; /* credit of the host that is left */
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
  bool wants_room; /* EPOLLOUT is set */
};

bool conn_open(int in_fd, int out_fd); /* takes the fds over, also on failure */
void conn_listen(int fd, bool check_peer);
size_t conn_count(void);

/* Sends a frame that costs no credit. The host's requests bound how many there are. */
void conn_send(Conn *c, uint16_t type, uint32_t channel, const void *payload, size_t len);
bool conn_send_fd(Conn *c, uint16_t type, uint32_t channel, const void *payload, size_t len, int fd);
void conn_fail(Conn *c); /* a protocol violation: the connection ends, the agent goes on */

void send_error(Conn *c, uint32_t channel, int kind, int err, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
void send_errno(Conn *c, uint32_t channel, int err); /* of an operation on files */

/* Returns NULL, after an answer to the host, when there are too many channels or no memory. `size` bytes, zeroed. */
void *channel_open(Conn *c, uint32_t id, size_t size, const ChannelOps *ops, uint32_t send_window);
Channel *channel_find(Conn *c, uint32_t id);
void channel_end(Channel *ch); /* after its last frame; its memory lives on until the turn is over */
void channel_wake(Channel *ch); /* call when pull() may have data */
void channel_consumed(Channel *ch, size_t bytes);

uint8_t *bulk_begin(Channel *ch, size_t *room); /* NULL without credit or memory */
void bulk_commit(Channel *ch, uint16_t type, size_t len);

/* Queue of bytes for a descriptor that is not always writable. */
typedef struct {
  uint8_t *data;
  size_t head, len, cap;
} Fifo;

bool fifo_push(Fifo *f, const uint8_t *data, size_t len);
/* Writes as much as possible. Returns the bytes written; *broken when the other side accepts no more. */
size_t fifo_flush(Fifo *f, int fd, bool *broken);
void fifo_clear(Fifo *f);

/* request.c */
void request_dispatch(Conn *c, uint16_t type, uint32_t channel, Cursor *request);

#endif
