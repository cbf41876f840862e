/* Reading an archive from standard input, member by member. */
#ifndef AIDO_TOOL_UNTAR_H
#define AIDO_TOOL_UNTAR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

struct member {
    char type;
    mode_t mode;
    uint64_t size; /* of the content that follows */
    struct timespec modified;
    const char *path, *link; /* as the archive has them; valid until the next member */
};

/* False at the end of the archive. A broken archive ends the tool. */
bool member_next(struct member *member);

/* Up to size bytes of the current member's content; 0 at its end. What is not read is skipped by member_next. */
size_t member_read(void *buffer, size_t size);
/* Moves content to a file without a copy in between, all of it or what can be; member_read gives the rest. */
void member_move(int fd);

#endif
