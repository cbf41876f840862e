#define _GNU_SOURCE
#include "path_walk.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "path.h"

struct walk {
    int root, dir;   /* dir is where the walk stands; -1 stands for the root */
    char *rest, *at; /* what is still to be walked, from at on */
    char *done;      /* names from the root to dir, each ended by NUL: a `..` walks them anew */
    size_t done_size;
};

static int here(const struct walk *walk)
{
    return walk->dir < 0 ? walk->root : walk->dir;
}

static void stand(struct walk *walk, int dir)
{
    if (walk->dir >= 0)
        close(walk->dir);
    walk->dir = dir;
}

static bool push(struct walk *walk, const char *name, int dir)
{
    size_t size = strlen(name) + 1;
    char *done = realloc(walk->done, walk->done_size + size);
    if (!done) {
        close(dir);
        return false;
    }
    memcpy(done + walk->done_size, name, size);
    walk->done = done;
    walk->done_size += size;
    stand(walk, dir);
    return true;
}

/* The directory above is found from the root again: a `..` of the kernel would follow a directory that was moved away. */
static bool pop(struct walk *walk)
{
    if (walk->done_size > 0)
        walk->done_size--;
    while (walk->done_size > 0 && walk->done[walk->done_size - 1])
        walk->done_size--;
    stand(walk, -1);
    for (size_t i = 0; i < walk->done_size; i += strlen(walk->done + i) + 1) {
        int next = openat(here(walk), walk->done + i, O_PATH | O_NOFOLLOW | O_DIRECTORY | O_CLOEXEC);
        if (next < 0)
            return false;
        stand(walk, next);
    }
    return true;
}

/* Puts the link's target before what is left to walk. */
static bool expand(struct walk *walk, int link, size_t name_size)
{
    char target[PATH_LIMIT];
    ssize_t size = readlinkat(link, "", target, sizeof target);
    if (size < 0)
        return false;
    const char *left = walk->at + name_size;
    size_t left_size = strlen(left);
    char *rest = malloc((size_t)size + left_size + 1);
    if (!rest)
        return false;
    memcpy(rest, target, (size_t)size);
    memcpy(rest + size, left, left_size + 1);
    free(walk->rest);
    walk->rest = walk->at = rest;
    if (size > 0 && target[0] == '/') {
        walk->done_size = 0;
        stand(walk, -1);
    }
    return true;
}

static int fail(int error)
{
    errno = error;
    return -1;
}

static int walk_on(struct walk *walk, int flags, int links_max)
{
    for (int links = 0;;) {
        walk->at += strspn(walk->at, "/");
        size_t size = strcspn(walk->at, "/");
        bool last = walk->at[size + strspn(walk->at + size, "/")] == '\0';
        char name[NAME_MAX + 1];
        struct stat st;
        if (size == 0)
            return openat(here(walk), ".", flags | O_CLOEXEC);
        if (size > NAME_MAX)
            return fail(ENAMETOOLONG);
        memcpy(name, walk->at, size);
        name[size] = '\0';
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0) {
            walk->at += size;
            if (name[1] && !pop(walk))
                return -1;
            continue;
        }
        int fd = openat(here(walk), name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
            return -1;
        bool known = fstat(fd, &st) == 0;
        if (known && S_ISLNK(st.st_mode) && !(last && flags & O_NOFOLLOW)) {
            bool ok = ++links <= links_max ? expand(walk, fd, size) : fail(ELOOP) == 0;
            int error = errno;
            close(fd);
            if (!ok)
                return fail(error);
        } else if (last) {
            close(fd);
            return openat(here(walk), name, flags | O_NOFOLLOW | O_CLOEXEC);
        } else if (known && S_ISDIR(st.st_mode)) {
            if (!push(walk, name, fd))
                return fail(ENOMEM);
            walk->at += size;
        } else {
            close(fd);
            return fail(known ? ENOTDIR : EIO);
        }
    }
}

int path_walk(int root, const char *path, int flags, int links_max)
{
    struct walk walk = {.root = root, .dir = -1, .rest = strdup(path)};
    if (!walk.rest)
        return -1;
    walk.at = walk.rest;
    int fd = walk_on(&walk, flags, links_max);
    int error = errno;
    stand(&walk, -1);
    free(walk.rest);
    free(walk.done);
    return fd < 0 ? fail(error) : fd;
}
