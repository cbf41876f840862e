#include <errno.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "agent.h"

enum { BATCH = 32 };
static int epoll = -1;
/* The batch being handled: a source that is closed meanwhile must not be woken from it. */
static struct epoll_event batch[BATCH];
static int batched;

bool loop_open(void) {
  epoll = epoll_create1(EPOLL_CLOEXEC);
  return epoll >= 0;
}

void loop_set(struct source *s, int fd, void (*ready)(struct source *, uint32_t)) {
  *s = (struct source){.fd = fd, .ready = ready};
  if (fd > the.highest_fd) the.highest_fd = fd;
}

bool loop_watch(struct source *s, uint32_t events) {
  if (s->fd < 0 || (s->watched && s->events == events)) return true;
  struct epoll_event event = {.events = events, .data.ptr = s};
  if (epoll_ctl(epoll, s->watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, s->fd, &event) != 0) return false;
  s->watched = true;
  s->events = events;
  return true;
}

void loop_pause(struct source *s) {
  if (!s->watched) return;
  epoll_ctl(epoll, EPOLL_CTL_DEL, s->fd, NULL);
  s->watched = false;
  for (int i = 0; i < batched; i++)
    if (batch[i].data.ptr == s) batch[i].data.ptr = NULL;
}

void loop_close(struct source *s) {
  if (s->fd < 0) return;
  loop_pause(s);
  close(s->fd);
  s->fd = -1;
}

void loop_wait(int timeout_ms) {
  int count = epoll_wait(epoll, batch, BATCH, timeout_ms);
  batched = count > 0 ? count : 0;
  for (int i = 0; i < batched; i++) {
    struct source *s = batch[i].data.ptr;
    if (s != NULL) s->ready(s, batch[i].events);
  }
  batched = 0;
}

uint64_t now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}
