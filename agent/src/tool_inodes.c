#define _GNU_SOURCE
#include "tool_inodes.h"

#include <stdint.h>
#include <string.h>

#include "tool_io.h"

struct inode {
    dev_t dev;
    ino_t ino;
    char *name; /* NULL: a free slot */
};

static struct inode *slot(const struct inodes *inodes, dev_t dev, ino_t ino)
{
    size_t at = (size_t)((ino * 0x9e3779b97f4a7c15u) >> 20) & (inodes->cap - 1);
    while (inodes->slots[at].name && (inodes->slots[at].ino != ino || inodes->slots[at].dev != dev))
        at = (at + 1) & (inodes->cap - 1);
    return &inodes->slots[at];
}

static void grow(struct inodes *inodes)
{
    struct inodes bigger = {.used = inodes->used, .cap = inodes->cap ? inodes->cap * 2 : 256};
    bigger.slots = tool_alloc(NULL, bigger.cap * sizeof *bigger.slots);
    memset(bigger.slots, 0, bigger.cap * sizeof *bigger.slots);
    for (size_t i = 0; i < inodes->cap; i++)
        if (inodes->slots[i].name)
            *slot(&bigger, inodes->slots[i].dev, inodes->slots[i].ino) = inodes->slots[i];
    *inodes = bigger;
}

const char *inodes_first(struct inodes *inodes, const struct stat *st, const char *name)
{
    if (inodes->used * 2 >= inodes->cap)
        grow(inodes);
    struct inode *found = slot(inodes, st->st_dev, st->st_ino);
    if (found->name)
        return found->name;
    *found = (struct inode){.dev = st->st_dev, .ino = st->st_ino};
    found->name = strcpy(tool_alloc(NULL, strlen(name) + 1), name);
    inodes->used++;
    return NULL;
}
