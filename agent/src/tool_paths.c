#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "tool_io.h"

#define LONGEST_PATH (1024 * 1024)

void in_paths(int base, void (*take)(int base, const char *path))
{
    size_t cap = TOOL_BUFFER, have = 0;
    char *paths = tool_alloc(NULL, cap);
    for (;;) {
        /* Answers must not wait in the buffer for the next question. */
        out_flush();
        size_t n = in_some(0, paths + have, cap - have);
        if (n == 0)
            break;
        have += n;
        char *at = paths, *nul;
        while ((nul = memchr(at, '\0', have - (size_t)(at - paths)))) {
            take(base, at);
            at = nul + 1;
        }
        have -= (size_t)(at - paths);
        memmove(paths, at, have);
        if (have < cap)
            continue;
        if (cap >= LONGEST_PATH)
            tool_usage("paths on standard input, each ended by NUL and not above 1 MiB");
        paths = tool_alloc(paths, cap *= 2);
    }
    if (have > 0)
        tool_usage("paths on standard input, each ended by NUL");
    free(paths);
}
