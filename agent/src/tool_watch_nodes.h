/* The watched directories of a tree, by watch descriptor. */
#ifndef AIDO_TOOL_WATCH_NODES_H
#define AIDO_TOOL_WATCH_NODES_H

#include <stddef.h>

struct node {
    struct node *next; /* in its bucket */
    struct node *up;   /* NULL for the base */
    int wd;
    char name[];
};

struct node *node_find(int wd);
struct node *node_child(const struct node *up, const char *name);
/* The node of wd, new or at a new place. */
struct node *node_put(int wd, struct node *up, const char *name);
/* Forgets the node and all beneath it, everything when it is NULL; dropped, if given, is called for each watch. */
void node_drop(struct node *node, void (*dropped)(int wd));

/* The path of name in the node's directory (of the directory itself when name is empty), valid until the next call. */
const char *node_path(const struct node *node, const char *name, size_t *size);

#endif
