#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "path.h"
#include "tool_io.h"
#include "tool_tree.h"

static struct place find(int root, const char *path, bool make_parents)
{
    struct place place;
    if (path_place(root, path, make_parents, PATH_LINKS_INSIDE, &place) < 0)
        tool_fail(errno, NULL);
    return place;
}

int tool_stat(int argc, char **argv)
{
    (void)argc;
    struct place place = find(tool_root(argv[1]), argv[2], false);
    struct stat st;
    if (fstatat(place.dir, place.name, &st, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH) < 0)
        tool_fail(errno, NULL);
    out_record(place.dir, place.name, &st, "", 0);
    return 0;
}

int tool_mkdir(int argc, char **argv)
{
    (void)argc;
    mode_t mode = (mode_t)tool_number(argv[3], 8, 07777);
    int root = tool_root(argv[1]);
    struct place place = find(root, argv[2], true);
    if (!place.name[0] || mkdirat(place.dir, place.name, mode) == 0)
        return 0;
    int error = errno;
    if (error == EEXIST && path_open(root, argv[2], O_PATH | O_DIRECTORY, PATH_LINKS_INSIDE) >= 0)
        return 0;
    tool_fail(error, NULL);
}

int tool_move(int argc, char **argv)
{
    (void)argc;
    int root = tool_root(argv[1]);
    struct stat st;
    struct place from = find(root, argv[2], false);
    /* Before anything is made for the target. */
    if (from.name[0] && fstatat(from.dir, from.name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        tool_fail(errno, NULL);
    struct place to = find(root, argv[3], true);
    if (!from.name[0] || !to.name[0])
        tool_fail(EBUSY, "a directory cannot be moved by . or .., nor the root");
    if (renameat(from.dir, from.name, to.dir, to.name) < 0)
        tool_fail(errno, NULL);
    return 0;
}

/* A directory that denies its owner would keep what it holds; its owner may change that. */
static void open_up(int dir, const char *name)
{
    int fd = openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return;
    (void)!chmod(tool_fd_path(fd), 0700);
    close(fd);
}

static bool remove_enter(void *context, const struct tree_entry *entry)
{
    int *error = context;
    if (S_ISDIR(entry->st->st_mode)) {
        if ((entry->st->st_mode & 0700) != 0700)
            open_up(entry->dir, entry->name);
        return true;
    }
    if (unlinkat(entry->dir, entry->name, 0) < 0 && errno != ENOENT && !*error)
        *error = errno;
    return false;
}

static void remove_leave(void *context, const struct tree_entry *entry)
{
    int *error = context;
    if (unlinkat(entry->dir, entry->name, AT_REMOVEDIR) < 0 && errno != ENOENT && !*error)
        *error = errno;
}

static void remove_failed(void *context, const char *path, int failure)
{
    int *error = context;
    (void)path;
    if (!*error)
        *error = failure;
}

/* With all it holds; what is not there is gone already. */
static void remove_entry(int root, const char *path, enum path_links links)
{
    static const struct tree_visitor visitor = {
        .enter = remove_enter, .leave = remove_leave, .failed = remove_failed};
    struct place place;
    struct stat st;
    int error = 0;
    if (path_place(root, path, false, links, &place) < 0) {
        /* A link or a file where a directory was: what lay beneath it is gone. */
        if (errno == ENOENT || (links == PATH_LINKS_NONE && (errno == ELOOP || errno == ENOTDIR)))
            return;
        tool_fail(errno, NULL);
    }
    if (!place.name[0])
        tool_fail(EBUSY, "a directory cannot be removed by . or .., nor the root");
    if (fstatat(place.dir, place.name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
        if (errno != ENOENT)
            tool_fail(errno, NULL);
        close(place.dir);
        return;
    }
    if (!S_ISDIR(st.st_mode)) {
        if (unlinkat(place.dir, place.name, 0) < 0 && errno != ENOENT)
            tool_fail(errno, NULL);
        close(place.dir);
        return;
    }
    if ((st.st_mode & 0700) != 0700)
        open_up(place.dir, place.name);
    int fd = openat(place.dir, place.name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0)
        tree_walk(fd, &visitor, &error);
    if (unlinkat(place.dir, place.name, AT_REMOVEDIR) < 0 && errno != ENOENT)
        tool_fail(error ? error : errno, NULL);
    close(place.dir);
}

int tool_remove(int argc, char **argv)
{
    (void)argc;
    remove_entry(tool_root(argv[1]), argv[2], PATH_LINKS_INSIDE);
    return 0;
}

/* Removes the path, then the directories above it that this left empty. */
static void prune_one(int base, const char *path)
{
    size_t size = strlen(path);
    char *rest = tool_alloc(NULL, size + 1);
    memcpy(rest, path, size + 1);
    remove_entry(base, rest, PATH_LINKS_NONE);
    for (char *slash; (slash = strrchr(rest, '/'));) {
        *slash = '\0';
        struct place place;
        if (path_place(base, rest, false, PATH_LINKS_NONE, &place) < 0)
            break;
        bool removed = place.name[0] && unlinkat(place.dir, place.name, AT_REMOVEDIR) == 0;
        close(place.dir);
        if (!removed)
            break;
    }
    free(rest);
}

int tool_prune(int argc, char **argv)
{
    (void)argc;
    in_paths(tool_directory(argv[1], argv[2]), prune_one);
    return 0;
}
