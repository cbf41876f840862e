/* `watch … sync`: paths that changed since the last question, told when asked. */
#ifndef AIDO_TOOL_WATCH_SYNC_H
#define AIDO_TOOL_WATCH_SYNC_H

#include <stdbool.h>
#include <stddef.h>

/* gone: it went, so whatever is there now is another one, and nothing known beneath it counts. */
void dirty_add(const char *path, size_t size, bool gone);
/* Events were lost: the next answer is to look at everything. */
void dirty_everything(void);
/* Something cannot be watched: so is every answer. */
void dirty_always(void);
/* One answer: what each path is now, beneath the directory base. Whether that was all there is to say. Not flushed. */
bool dirty_answer(int base);

#endif
