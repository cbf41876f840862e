#include "agent.h"

void trim_later(const struct buffer *b) {
  if (b->capacity > BUFFER_SMALL && the.trim_at == 0) the.trim_at = now_ms() + TRIM_MS;
}

static void trim(struct buffer *b) {
  buffer_shrink(b);
  trim_later(b);
}

void trim_buffers(void) {
  the.trim_at = 0;
  for (struct exec *e = the.execs; e != NULL; e = e->next) trim(&e->pending);
  for (int i = 0; i < MAX_CONNS; i++) {
    trim(&the.conns[i].in);
    trim(&the.conns[i].out);
  }
}
