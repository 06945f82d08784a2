#include <stdlib.h>
#include <string.h>

#include "process.h"

typedef struct {
  Channel ch;
  uint64_t after; /* processes up to this seq were sent */
} ListChannel;

#define INPUT_OPEN 16
#define TELLS_END 32 /* and whether the input is open */

static void put_process(Builder *b, const Process *p) {
  put_str(b, p->id);
  put_u32(b, (uint32_t)p->pid);
  int flags = (p->exited ? 0 : 1) | (p->terminal ? 2 : 0) | (p->background ? 4 : 0) | (p->timed_out ? 8 : 0);
  put_u8(b, (uint8_t)(flags | (process_input_open(p) ? INPUT_OPEN : 0) | TELLS_END));
  put_u64(b, p->started_at);
  put_u32(b, (uint32_t)p->code);
  put_u8(b, (uint8_t)p->signo);
  put_u32(b, p->argc);
  for (const char *at = p->command; at < p->command + p->command_len; at += strlen(at) + 1) put_str(b, at);
  put_u64(b, p->ended_at);
}

static bool list_pull(Channel *ch) {
  ListChannel *list = (ListChannel *)ch;
  size_t room;
  uint8_t *to = bulk_begin(ch, &room);
  if (to == NULL) return false;
  uint8_t *records = malloc(MAX_LIST_FRAME);
  Builder b = {.data = records, .cap = records == NULL ? 0 : MAX_LIST_FRAME};
  bool all = true;
  for (const Process *p = process_first(); p != NULL; p = p->next) {
    if (p->seq <= list->after) continue;
    size_t before = b.len;
    put_process(&b, p);
    if (b.bad || b.len > room) {
      b.len = before;
      all = false;
      break;
    }
    list->after = p->seq;
  }
  if (b.len > 0) memcpy(to, records, b.len);
  free(records);
  if (b.len > 0) {
    bulk_commit(ch, T_ENTRIES, b.len);
    return true;
  }
  if (!all) return false; /* no room: the next credit continues the list */
  conn_send(ch->conn, T_RESULT, ch->id, NULL, 0);
  channel_end(ch);
  return false;
}

static void list_gone(Channel *ch) { (void)ch; }

static const ChannelOps ops = {.pull = list_pull, .gone = list_gone};

void request_processes(Conn *c, uint32_t id, Cursor *request) {
  uint32_t window = take_u32(request);
  if (!take_end(request)) {
    conn_fail(c);
    return;
  }
  ListChannel *list = channel_open(c, id, sizeof *list, &ops, window);
  if (list != NULL) channel_wake(&list->ch);
}
