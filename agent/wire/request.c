/* Handles frames of the host. A frame that breaks the protocol ends that connection only. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../agent.h"

static bool copy_setting(char **to, const char *from) {
  free(*to);
  *to = *from == 0 ? NULL : strdup(from);
  return *from == 0 || *to != NULL;
}

/* Reads magic, version, then this host's default user and directory, each possibly empty. */
static void hello(Conn *c, Cursor *request) {
  bool magic = (size_t)(request->end - request->at) >= 8 && memcmp(request->at, PROTOCOL_MAGIC, 8) == 0;
  if (!magic) {
    conn_fail(c);
    return;
  }
  request->at += 8;
  uint16_t version = take_u16(request);
  const char *user = take_str(request), *cwd = take_str(request);
  if (!take_end(request) || !copy_setting(&c->user, user) || !copy_setting(&c->cwd, cwd)) {
    conn_fail(c);
    return;
  }
  uint8_t payload[64];
  Builder b = {.data = payload, .cap = sizeof payload};
  uint32_t features = F_PTY | F_WATCH | (c->stdio ? 0 : F_HANDOUT);
  if (agent.init) features |= F_INIT;
  if (agent.privileged) features |= F_ROOT;
  put_bytes(&b, PROTOCOL_MAGIC, 8);
  put_u16(&b, PROTOCOL_VERSION);
  put_u32(&b, features);
  put_u32(&b, (uint32_t)getpid());
  put_u32(&b, agent.uid);
  put_u32(&b, MAX_PAYLOAD);
  put_u32(&b, INPUT_WINDOW);
  conn_send(c, T_WELCOME, 0, payload, b.len);
  /* A host of another version reads the answer and decides. */
  if (version != PROTOCOL_VERSION) return;
  if (!c->greeted) caller_taken();
  c->greeted = true;
}

static void part(Conn *c, uint32_t channel, Cursor *request) {
  size_t len = (size_t)(request->end - request->at);
  if ((c->part_len > 0 && c->part_channel != channel) || c->part_len + len > MAX_REQUEST) {
    conn_fail(c);
    return;
  }
  uint8_t *grown = realloc(c->part, c->part_len + len + 1);
  if (grown == NULL) {
    conn_fail(c);
    return;
  }
  memcpy(grown + c->part_len, request->at, len);
  c->part = grown;
  c->part_len += len;
  c->part_channel = channel;
}

static void ping(Conn *c, Cursor *request) {
  size_t len = (size_t)(request->end - request->at);
  if (len > 64) conn_fail(c);
  else conn_send(c, T_PONG, 0, request->at, len);
}

static void input(Channel *ch, Cursor *request) {
  size_t len = (size_t)(request->end - request->at);
  size_t cost = len < MIN_COST ? MIN_COST : len;
  if (cost > ch->recv_window) {
    conn_fail(ch->conn);
    return;
  }
  ch->recv_window -= (uint32_t)cost;
  /* Small frames are packed here: the minimum cost beyond their size is given back as credit. */
  if (cost > len) channel_consumed(ch, cost - len);
  if (len == 0) return;
  if (ch->ops->data != NULL) ch->ops->data(ch, request->at, len);
  else channel_consumed(ch, len);
}

static void in_channel(Conn *c, uint16_t type, Channel *ch, Cursor *request) {
  switch (type) {
    case T_DATA:
      input(ch, request);
      return;
    case T_EOF:
      if (ch->ops->eof != NULL) ch->ops->eof(ch);
      return;
    case T_WINDOW: {
      uint32_t credit = take_u32(request);
      if (!take_end(request) || credit > MAX_WINDOW - ch->send_window) conn_fail(c);
      else {
        ch->send_window += credit;
        channel_wake(ch);
      }
      return;
    }
    case T_SIGNAL: {
      int signo = take_u8(request);
      if (!take_end(request) || signo < 1 || signo > 64) conn_fail(c);
      else if (ch->ops->signal != NULL) ch->ops->signal(ch, signo);
      return;
    }
    case T_RESIZE: {
      unsigned cols = take_u16(request), rows = take_u16(request);
      if (!take_end(request)) conn_fail(c);
      else if (ch->ops->resize != NULL) ch->ops->resize(ch, cols, rows);
      return;
    }
    default: {
      uint32_t id = ch->id;
      ch->ops->gone(ch);
      channel_end(ch);
      conn_send(c, T_CLOSED, id, NULL, 0);
    }
  }
}

typedef void (*Handler)(Conn *, uint32_t, Cursor *);

static Handler handler_of(uint16_t type) {
  switch (type) {
    case T_SPAWN: return request_spawn;
    case T_ATTACH: return request_attach;
    case T_PROCESSES: return request_processes;
    case T_STAT: return request_stat;
    case T_LIST: return request_list;
    case T_READ: return request_read;
    case T_WRITE: return request_write;
    case T_MKDIR: return request_mkdir;
    case T_MOVE: return request_move;
    case T_REMOVE: return request_remove;
    case T_WATCH: return request_watch;
    case T_UNPACK: return request_unpack;
    case T_PACK: return request_pack;
    case T_DIAL: return request_dial;
    case T_LISTEN: return request_listen;
    case T_HANDOUT: return request_handout;
    default: return NULL;
  }
}

static void open_request(Conn *c, uint16_t type, uint32_t channel, Cursor *request) {
  Handler handler = handler_of(type);
  bool fresh = channel != 0 && (channel & AGENT_CHANNEL) == 0 && channel_find(c, channel) == NULL;
  if (handler == NULL || !fresh || (c->part_len > 0 && c->part_channel != channel)) {
    conn_fail(c);
    return;
  }
  if (c->part_len == 0) {
    handler(c, channel, request);
    return;
  }
  part(c, channel, request);
  if (c->dead) return;
  uint8_t *whole = c->part;
  Cursor joined = {.at = whole, .end = whole + c->part_len};
  c->part = NULL;
  c->part_len = 0;
  handler(c, channel, &joined);
  free(whole);
}

void request_dispatch(Conn *c, uint16_t type, uint32_t channel, Cursor *request) {
  if (!c->greeted) {
    if (type == T_HELLO && channel == 0) hello(c, request);
    else conn_fail(c);
    return;
  }
  if (type == T_PING && channel == 0) {
    ping(c, request);
    return;
  }
  if (type == T_PART && channel != 0) {
    part(c, channel, request);
    return;
  }
  if (type >= T_DATA && type <= T_CLOSE) {
    /* A frame for a channel that has ended meanwhile is no violation. */
    Channel *ch = channel_find(c, channel);
    if (ch != NULL) in_channel(c, type, ch, request);
    return;
  }
  open_request(c, type, channel, request);
}
