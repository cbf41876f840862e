/* Walks a tree without following links, without recursion and with few descriptors, however deep it is. */
#ifndef AIDO_TOOL_TREE_H
#define AIDO_TOOL_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

/* Of a directory that is entered, so that no entry's path is longer than 1 MiB. */
#define TREE_PATH_MAX ((1 << 20) - 256)

struct tree_entry {
    int dir;                     /* the directory that holds it; in leave -1 when that is gone */
    const char *name;            /* in that directory */
    const char *path;            /* from the base */
    size_t path_size;
    const struct stat *st;       /* NULL in leave */
    struct timespec dir_changed; /* ctime of the directory that holds it */
};

struct tree_visitor {
    bool sorted;       /* by bytes of the name within a directory; otherwise as the file system has them */
    size_t path_max;   /* a deeper directory ends the tool with ENAMETOOLONG; 0 = no limit */
    bool (*enter)(void *context, const struct tree_entry *entry); /* true: a directory is descended into */
    void (*leave)(void *context, const struct tree_entry *entry); /* once for each true of a directory; may be NULL */
    void (*failed)(void *context, const char *path, int error);   /* a directory that cannot be read; may be NULL */
};

/* Visits all beneath base, which it closes. Other file systems are shown but not descended into. */
void tree_walk(int base, const struct tree_visitor *visitor, void *context);

#endif
