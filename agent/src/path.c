#define _GNU_SOURCE
#include "path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "path_walk.h"
#include "tool_io.h"

#ifndef SYS_openat2
#define SYS_openat2 437
#endif
#define RESOLVE_NO_MAGICLINKS 2
#define RESOLVE_NO_SYMLINKS 4
#define RESOLVE_BENEATH 8
#define RESOLVE_IN_ROOT 16
#define LINKS_MAX 40
#define RACE_TRIES 32

static int open_by_kernel(int root, const char *path, int flags, enum path_links links)
{
    struct {
        uint64_t flags, mode, resolve;
    } how = {.flags = (uint64_t)(flags | O_CLOEXEC)};
    how.resolve = RESOLVE_NO_MAGICLINKS |
                  (links == PATH_LINKS_NONE ? RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS : RESOLVE_IN_ROOT);
    long fd = -1;
    /* EAGAIN: something was renamed during the walk and the kernel cannot vouch for a `..`. */
    for (int tries = 0; tries < RACE_TRIES; tries++) {
        fd = syscall(SYS_openat2, root, path, &how, sizeof how);
        if (fd >= 0 || errno != EAGAIN)
            break;
    }
    return (int)fd;
}

bool path_old_kernel(void)
{
    return getenv("AIDO_AGENT_OLD_KERNEL") != NULL;
}

int path_open(int root, const char *path, int flags, enum path_links links)
{
    while (*path == '/')
        path++;
    if (!*path)
        path = ".";
    if (strlen(path) < PATH_LIMIT && !path_old_kernel()) {
        int fd = open_by_kernel(root, path, flags, links);
        /* Old kernels and seccomp filters answer with one of these; a name may also truly be refused so. */
        bool retry = errno == ENOSYS || errno == EPERM || errno == EINVAL || errno == E2BIG || errno == EAGAIN;
        if (fd >= 0 || !retry)
            return fd;
    }
    return path_walk(root, path, flags, links == PATH_LINKS_NONE ? 0 : LINKS_MAX);
}

/* Where the last component begins; trailing slashes are not part of it. */
static size_t last_component(const char *path, size_t *end)
{
    *end = strlen(path);
    while (*end > 0 && path[*end - 1] == '/')
        --*end;
    size_t start = *end;
    while (start > 0 && path[start - 1] != '/')
        start--;
    return start;
}

static bool is_dots(const char *name, size_t size)
{
    return size == 0 || (size == 1 && name[0] == '.') || (size == 2 && name[0] == '.' && name[1] == '.');
}

/* Makes and enters the components of path after the first `have` bytes, which dir is. */
static int make_rest(int root, int dir, char *path, size_t have, enum path_links links)
{
    for (size_t at = have; path[at];) {
        size_t size = strcspn(path + at, "/");
        char after = path[at + size];
        path[at + size] = '\0';
        int next;
        if (is_dots(path + at, size))
            next = path_open(root, path, O_PATH | O_DIRECTORY, links);
        else if (mkdirat(dir, path + at, 0755) < 0 && errno != EEXIST)
            next = -1;
        else
            next = openat(dir, path + at, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        int error = errno;
        close(dir);
        errno = error;
        if (next < 0)
            return -1;
        dir = next;
        path[at + size] = after;
        at += size + (after ? 1 : 0);
    }
    return dir;
}

int path_make(int root, const char *path, enum path_links links)
{
    int dir = path_open(root, path, O_PATH | O_DIRECTORY, links);
    if (dir >= 0 || errno != ENOENT)
        return dir;
    char *copy = strdup(path);
    if (!copy)
        return -1;
    size_t have = strlen(copy);
    while (dir < 0 && errno == ENOENT && have > 0) {
        size_t end;
        copy[have] = '\0';
        have = last_component(copy, &end);
        copy[have] = '\0';
        dir = path_open(root, copy, O_PATH | O_DIRECTORY, links);
    }
    if (dir >= 0) {
        strcpy(copy, path);
        dir = make_rest(root, dir, copy, have, links);
    }
    int error = errno;
    free(copy);
    errno = error;
    return dir;
}

int path_place(int root, const char *path, bool make_parents, enum path_links links, struct place *place)
{
    size_t end, start = last_component(path, &end);
    if (is_dots(path + start, end - start)) {
        place->name[0] = '\0';
        place->dir = path_open(root, path, O_PATH | O_DIRECTORY, links);
        return place->dir < 0 ? -1 : 0;
    }
    if (end - start > NAME_MAX) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(place->name, path + start, end - start);
    place->name[end - start] = '\0';
    char *parent = strndup(path, start);
    if (!parent)
        return -1;
    place->dir = make_parents ? path_make(root, parent, links) : path_open(root, parent, O_PATH | O_DIRECTORY, links);
    int error = errno;
    free(parent);
    errno = error;
    return place->dir < 0 ? -1 : 0;
}

int path_target(int root, const char *path, bool make_parents, struct place *place)
{
    char link[PATH_LIMIT];
    char *now = strdup(path);
    for (int links = 0; now && links <= LINKS_MAX; links++) {
        if (path_place(root, now, make_parents && links == 0, PATH_LINKS_INSIDE, place) < 0)
            return -1;
        ssize_t size = place->name[0] ? readlinkat(place->dir, place->name, link, sizeof link - 1) : -1;
        if (size < 0)
            return 0;
        link[size] = '\0';
        close(place->dir);
        size_t end, start = link[0] == '/' ? 0 : last_component(now, &end);
        char *next = malloc(start + (size_t)size + 1);
        if (!next)
            return -1;
        memcpy(next, now, start);
        memcpy(next + start, link, (size_t)size + 1);
        free(now);
        now = next;
    }
    errno = now ? ELOOP : ENOMEM;
    return -1;
}
