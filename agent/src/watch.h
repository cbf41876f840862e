/* What the supervisor and a run of the tool `watch … sync` share, so that it need not be asked when there is nothing to say. */
#ifndef AIDO_WATCH_H
#define AIDO_WATCH_H

#include <stdbool.h>
#include <stdint.h>

struct watch {
  int inotify; /* -1 = none */
  unsigned *unsaid; /* not 0 while the tool has taken events that it has not told */
};
#define NO_WATCH ((struct watch){.inotify = -1})

bool watch_is_sync(char *const *argv);
/* Leaves NO_WATCH when it cannot be had: the tool then opens its own. */
void watch_open(struct watch *watch, uint32_t uid);
void watch_close(struct watch *watch);
/* Whether nothing has happened since the tool's last answer. */
bool watch_is_quiet(const struct watch *watch);

#endif
