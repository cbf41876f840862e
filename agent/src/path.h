/* Paths beneath a root: links and `..` never lead out of it, whoever renames what meanwhile. */
#ifndef AIDO_PATH_H
#define AIDO_PATH_H

#include <limits.h>
#include <stdbool.h>

/* Longest link target, and longest path that is handed to the kernel in one piece. */
#define PATH_LIMIT 4096

enum path_links {
    PATH_LINKS_INSIDE, /* links are followed; an absolute one starts at the root */
    PATH_LINKS_NONE,   /* any link is ELOOP */
};

/* An entry by the directory that holds it; an empty name means that directory itself. */
struct place {
    int dir;
    char name[NAME_MAX + 1];
};

/* Whether to do without what old kernels and some file systems lack: set by tests of the other way. */
bool path_old_kernel(void);

/* open(2) beneath the directory root; -1 with errno set. Takes no O_CREAT. */
int path_open(int root, const char *path, int flags, enum path_links links);

/* Opens the directory path with O_PATH and makes what is missing of it. */
int path_make(int root, const char *path, enum path_links links);

/* Finds the directory that holds the entry; a link as last component is not followed. */
int path_place(int root, const char *path, bool make_parents, enum path_links links, struct place *place);

/* As path_place, but goes on to where links as last component lead. */
int path_target(int root, const char *path, bool make_parents, struct place *place);

#endif
