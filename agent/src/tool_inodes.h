/* Files with more than one name, by inode: the first name seen of each. */
#ifndef AIDO_TOOL_INODES_H
#define AIDO_TOOL_INODES_H

#include <stddef.h>
#include <sys/stat.h>

struct inodes {
    struct inode *slots;
    size_t used, cap;
};

/* The name stored for this file, or NULL after storing a copy of name for it. */
const char *inodes_first(struct inodes *inodes, const struct stat *st, const char *name);

#endif
