#define _GNU_SOURCE
#include "tool_watch_nodes.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tool_io.h"

#define BUCKETS 4096

static struct node *buckets[BUCKETS];

static struct node **bucket(int wd)
{
    return &buckets[(unsigned)wd % BUCKETS];
}

struct node *node_find(int wd)
{
    struct node *node = *bucket(wd);
    while (node && node->wd != wd)
        node = node->next;
    return node;
}

struct node *node_child(const struct node *up, const char *name)
{
    for (size_t i = 0; i < BUCKETS; i++)
        for (struct node *node = buckets[i]; node; node = node->next)
            if (node->up == up && strcmp(node->name, name) == 0)
                return node;
    return NULL;
}

struct node *node_put(int wd, struct node *up, const char *name)
{
    struct node *node = node_find(wd);
    if (node && node->up == up && strcmp(node->name, name) == 0)
        return node;
    /* The same directory under another name: the kernel has one watch for each. */
    if (node)
        node_drop(node, NULL);
    size_t size = strlen(name) + 1;
    node = tool_alloc(NULL, sizeof *node + size);
    *node = (struct node){.next = *bucket(wd), .up = up, .wd = wd};
    memcpy(node->name, name, size);
    *bucket(wd) = node;
    return node;
}

static bool is_beneath(const struct node *node, const struct node *top)
{
    while (node && node != top)
        node = node->up;
    return node == top;
}

void node_drop(struct node *top, void (*dropped)(int wd))
{
    struct node *gone = NULL;
    for (size_t i = 0; i < BUCKETS; i++) {
        for (struct node **at = &buckets[i]; *at;) {
            struct node *node = *at;
            if (!is_beneath(node, top)) {
                at = &node->next;
                continue;
            }
            *at = node->next;
            node->next = gone;
            gone = node;
        }
    }
    while (gone) {
        struct node *next = gone->next;
        if (dropped)
            dropped(gone->wd);
        free(gone);
        gone = next;
    }
}

const char *node_path(const struct node *node, const char *name, size_t *size)
{
    static char *path;
    size_t need = strlen(name) + 1;
    for (const struct node *at = node; at; at = at->up)
        need += strlen(at->name) + 1;
    path = tool_alloc(path, need);
    char *end = path + need - 1;
    *end = '\0';
    char *start = end - strlen(name);
    memcpy(start, name, (size_t)(end - start));
    for (; node && node->up; node = node->up) {
        if (start < end)
            *--start = '/';
        size_t part = strlen(node->name);
        start -= part;
        memcpy(start, node->name, part);
    }
    *size = (size_t)(end - start);
    return start;
}
