#define _GNU_SOURCE
#include "tool_tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "path.h"
#include "tool_io.h"

/* Directories above the current one that stay open; the ones above those are opened anew on the way back. */
#define OPEN_MAX_DEPTH 32
#define DIRECTORY_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)

struct frame {
    int fd;
    ino_t ino;
    struct timespec changed;
    char *names;  /* each ended by NUL */
    char **order; /* the same, sorted; NULL when that is not asked for */
    size_t names_size, count, next;
    size_t path_size, name_at; /* of this directory in the path buffer */
};

struct tree {
    const struct tree_visitor *visitor;
    void *context;
    int base;
    dev_t dev;
    struct frame *frames;
    size_t depth, cap;
    char *path;
    size_t path_cap;
};

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int read_names(struct frame *frame)
{
    static char buffer[32768];
    size_t cap = 0;
    for (;;) {
        long n = syscall(SYS_getdents64, frame->fd, buffer, sizeof buffer);
        if (n <= 0)
            return (int)n;
        for (long at = 0; at < n;) {
            struct dirent *entry = (struct dirent *)(buffer + at);
            const char *name = entry->d_name;
            at += entry->d_reclen;
            if (name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2])))
                continue;
            size_t size = strlen(name) + 1;
            if (frame->names_size + size > cap)
                frame->names = tool_alloc(frame->names, cap = cap * 2 + size + 64);
            memcpy(frame->names + frame->names_size, name, size);
            frame->names_size += size;
            frame->count++;
        }
    }
}

static void sort_names(struct frame *frame)
{
    frame->order = tool_alloc(NULL, frame->count * sizeof *frame->order);
    char *name = frame->names;
    for (size_t i = 0; i < frame->count; i++, name += strlen(name) + 1)
        frame->order[i] = name;
    qsort(frame->order, frame->count, sizeof *frame->order, by_bytes);
}

static const char *next_name(struct frame *frame)
{
    if (frame->order)
        return frame->next < frame->count ? frame->order[frame->next++] : NULL;
    if (frame->next >= frame->names_size)
        return NULL;
    const char *name = frame->names + frame->next;
    frame->next += strlen(name) + 1;
    return name;
}

static void failed(struct tree *tree, int error)
{
    if (tree->visitor->failed)
        tree->visitor->failed(tree->context, tree->path, error);
}

/* Takes fd over as the next frame; false when it is not to be walked. */
static bool push(struct tree *tree, int fd, size_t path_size, size_t name_at)
{
    struct stat st;
    if (fstat(fd, &st) < 0 || st.st_dev != tree->dev) {
        close(fd);
        return false;
    }
    if (tree->visitor->path_max && path_size > tree->visitor->path_max)
        tool_fail(ENAMETOOLONG, NULL);
    if (tree->depth == tree->cap)
        tree->frames = tool_alloc(tree->frames, (tree->cap = tree->cap * 2 + 64) * sizeof *tree->frames);
    if (tree->depth > OPEN_MAX_DEPTH) {
        struct frame *far = &tree->frames[tree->depth - OPEN_MAX_DEPTH];
        if (far->fd >= 0)
            close(far->fd);
        far->fd = -1;
    }
    struct frame *frame = &tree->frames[tree->depth++];
    *frame = (struct frame){.fd = fd, .ino = st.st_ino, .changed = st.st_ctim};
    frame->path_size = path_size;
    frame->name_at = name_at;
    if (read_names(frame) < 0)
        failed(tree, errno);
    if (tree->visitor->sorted)
        sort_names(frame);
    return true;
}

static bool is_frame(const struct tree *tree, const struct frame *frame, int fd)
{
    struct stat st;
    return fd >= 0 && fstat(fd, &st) == 0 && st.st_dev == tree->dev && st.st_ino == frame->ino;
}

/* Opens the frame above child again, and only if it still is the directory it was. */
static void reopen(struct tree *tree, struct frame *frame, int child)
{
    frame->fd = child < 0 ? -1 : openat(child, "..", DIRECTORY_FLAGS);
    if (is_frame(tree, frame, frame->fd))
        return;
    if (frame->fd >= 0)
        close(frame->fd);
    tree->path[frame->path_size] = '\0';
    frame->fd = path_open(tree->base, tree->path, DIRECTORY_FLAGS, PATH_LINKS_NONE);
    tree->path[frame->path_size] = '/';
    if (is_frame(tree, frame, frame->fd))
        return;
    if (frame->fd >= 0)
        close(frame->fd);
    frame->fd = -1;
    frame->next = frame->order ? frame->count : frame->names_size;
    failed(tree, ESTALE);
}

static void pop(struct tree *tree)
{
    struct frame child = tree->frames[--tree->depth];
    free(child.names);
    free(child.order);
    if (tree->depth > 0) {
        struct frame *frame = &tree->frames[tree->depth - 1];
        if (frame->fd < 0)
            reopen(tree, frame, child.fd);
        tree->path[child.path_size] = '\0';
        if (tree->visitor->leave) {
            struct tree_entry entry = {.dir = frame->fd, .name = tree->path + child.name_at, .path = tree->path};
            entry.path_size = child.path_size;
            tree->visitor->leave(tree->context, &entry);
        }
    }
    if (child.fd >= 0 && child.fd != tree->base)
        close(child.fd);
}

static void visit(struct tree *tree, const char *name)
{
    struct frame *frame = &tree->frames[tree->depth - 1];
    struct stat st;
    if (fstatat(frame->fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return;
    size_t size = strlen(name), at = frame->path_size + (frame->path_size > 0);
    if (at + size + 1 > tree->path_cap)
        tree->path = tool_alloc(tree->path, tree->path_cap = tree->path_cap * 2 + at + size + 1);
    if (at > 0)
        tree->path[at - 1] = '/';
    memcpy(tree->path + at, name, size + 1);
    struct tree_entry entry = {.dir = frame->fd, .name = name, .path = tree->path, .path_size = at + size};
    entry.st = &st;
    entry.dir_changed = frame->changed;
    if (!tree->visitor->enter(tree->context, &entry) || !S_ISDIR(st.st_mode))
        return;
    int fd = openat(frame->fd, name, DIRECTORY_FLAGS);
    if (fd < 0 && errno != ENOENT)
        failed(tree, errno);
    bool walked = fd >= 0 && push(tree, fd, at + size, at);
    if (!walked && tree->visitor->leave) {
        entry.st = NULL;
        tree->visitor->leave(tree->context, &entry);
    }
}

void tree_walk(int base, const struct tree_visitor *visitor, void *context)
{
    struct tree tree = {.visitor = visitor, .context = context, .base = base};
    struct stat st;
    if (fstat(base, &st) < 0)
        tool_fail(errno, NULL);
    tree.dev = st.st_dev;
    tree.path = tool_alloc(NULL, tree.path_cap = PATH_LIMIT);
    tree.path[0] = '\0';
    push(&tree, base, 0, 0);
    while (tree.depth > 0) {
        const char *name = next_name(&tree.frames[tree.depth - 1]);
        if (name)
            visit(&tree, name);
        else
            pop(&tree);
    }
    free(tree.frames);
    free(tree.path);
    close(base);
}
