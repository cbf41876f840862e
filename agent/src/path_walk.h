#ifndef AIDO_PATH_WALK_H
#define AIDO_PATH_WALK_H

/* path_open without openat2: one component at a time, links_max links followed, none when it is 0. */
int path_walk(int root, const char *path, int flags, int links_max);

#endif
