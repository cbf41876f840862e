#define _GNU_SOURCE
#include "tool_untar.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "path.h"
#include "tool_io.h"

/* Memory for directories whose mode is set at the end. */
#define LATER_MAX (16u << 20)

/* Directories that deny their owner writing: what follows may belong into them. */
static char *later;
static size_t later_used;

static int base;
/* The directory that held the last member: most often it holds the next one too. */
static int parent = -1;
static char *parent_path;

static struct place partial = {.dir = -1};

static void unlink_partial(void)
{
    if (partial.dir >= 0)
        unlinkat(partial.dir, partial.name, 0);
}

/* A name of the archive without `.` components and doubled slashes; refuses what could lead elsewhere. */
static char *clean(const char *name)
{
    if (name[0] == '/')
        tool_fail(EPERM, "the archive has an absolute name");
    char *path = tool_alloc(NULL, strlen(name) + 1);
    size_t used = 0;
    while (*name) {
        size_t size = strcspn(name, "/");
        if (size == 2 && memcmp(name, "..", 2) == 0)
            tool_fail(EPERM, "the archive has a name with ..");
        if (size > 0 && !(size == 1 && name[0] == '.')) {
            if (used > 0)
                path[used++] = '/';
            memcpy(path + used, name, size);
            used += size;
        }
        name += size + (name[size] == '/');
    }
    path[used] = '\0';
    return path;
}

/* Splits path in place; *dir stays valid until the next call. */
static const char *enter_parent(char *path, int *dir)
{
    char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    if (slash)
        *slash = '\0';
    const char *holder = slash ? path : "";
    if (parent < 0 || strcmp(parent_path, holder) != 0) {
        size_t size = parent < 0 ? 0 : strlen(parent_path);
        bool deeper = size > 0 && strncmp(holder, parent_path, size) == 0 && holder[size] == '/';
        int next = path_make(deeper ? parent : base, deeper ? holder + size + 1 : holder, PATH_LINKS_NONE);
        if (next < 0)
            tool_fail(errno, holder);
        if (parent >= 0)
            close(parent);
        parent = next;
        free(parent_path);
        parent_path = strcpy(tool_alloc(NULL, strlen(holder) + 1), holder);
    }
    *dir = parent;
    return name;
}

/* What is in the way goes, a link too; a directory stays and is an error. */
static void clear(int dir, const char *name)
{
    if (unlinkat(dir, name, 0) < 0 && errno != ENOENT)
        tool_fail(errno, name);
}

static void extract_directory(int dir, const char *name, const char *path, mode_t mode)
{
    struct stat st;
    if (mkdirat(dir, name, mode | 0700) < 0) {
        if (errno != EEXIST || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            tool_fail(errno, path);
        if (!S_ISDIR(st.st_mode)) {
            clear(dir, name);
            if (mkdirat(dir, name, mode | 0700) < 0)
                tool_fail(errno, path);
        }
    }
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0) {
        /* Someone else's directory keeps its mode. */
        (void)!fchmod(fd, mode | 0700);
        close(fd);
    }
    if ((mode & 0700) == 0700)
        return;
    size_t size = strlen(path) + 1;
    if (later_used + sizeof mode + size > LATER_MAX)
        tool_fail(ENOMEM, "too many directories without write permission");
    later = tool_alloc(later, later_used + sizeof mode + size);
    memcpy(later + later_used, &mode, sizeof mode);
    memcpy(later + later_used + sizeof mode, path, size);
    later_used += sizeof mode + size;
}

static void restrict_directories(void)
{
    for (size_t at = 0; at < later_used;) {
        mode_t mode;
        memcpy(&mode, later + at, sizeof mode);
        const char *path = later + at + sizeof mode;
        int fd = path_open(base, path, O_RDONLY | O_DIRECTORY, PATH_LINKS_NONE);
        if (fd >= 0) {
            (void)!fchmod(fd, mode);
            close(fd);
        }
        at += sizeof mode + strlen(path) + 1;
    }
}

static void extract_file(int dir, const char *name, const struct member *member)
{
    static char buffer[TOOL_BUFFER];
    size_t n;
    clear(dir, name);
    int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, member->mode);
    if (fd < 0)
        tool_fail(errno, member->path);
    partial.dir = dir;
    strcpy(partial.name, name);
    member_move(fd);
    while ((n = member_read(buffer, sizeof buffer)) > 0)
        if (!write_all(fd, buffer, n))
            tool_fail(errno, member->path);
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, member->modified};
    futimens(fd, times);
    if (close(fd) < 0)
        tool_fail(errno, member->path);
    partial.dir = -1;
}

static void extract_link(int dir, const char *name, const struct member *member)
{
    char *path = clean(member->link);
    struct place to = {.dir = -1};
    if (path_place(base, path, false, PATH_LINKS_NONE, &to) < 0 || !to.name[0])
        tool_fail(to.dir < 0 ? errno : EPERM, member->path);
    struct stat old, now;
    bool same = fstatat(to.dir, to.name, &old, AT_SYMLINK_NOFOLLOW) == 0 &&
                fstatat(dir, name, &now, AT_SYMLINK_NOFOLLOW) == 0 && old.st_dev == now.st_dev &&
                old.st_ino == now.st_ino;
    if (!same) {
        clear(dir, name);
        if (linkat(to.dir, to.name, dir, name, 0) < 0)
            tool_fail(errno, member->path);
    }
    close(to.dir);
    free(path);
}

static void extract(const struct member *member)
{
    if (member->type == 'V')
        return;
    if (!strchr("01257", member->type) && member->type != '\0')
        tool_fail(member->type >= '3' && member->type <= '6' ? EPERM : ENOTSUP,
                  "the archive has a device, a FIFO or a member of an unknown type");
    char *path = clean(member->path);
    char *whole = strcpy(tool_alloc(NULL, strlen(path) + 1), path);
    int dir;
    const char *name = enter_parent(path, &dir);
    if (strlen(name) > NAME_MAX)
        tool_fail(ENAMETOOLONG, member->path);
    if (!name[0]) {
        if (member->type != '5')
            tool_fail(EISDIR, "the archive has a member without a name");
    } else if (member->type == '5') {
        extract_directory(dir, name, whole, member->mode);
    } else if (member->type == '2') {
        clear(dir, name);
        if (symlinkat(member->link, dir, name) < 0)
            tool_fail(errno, member->path);
    } else if (member->type == '1') {
        extract_link(dir, name, member);
    } else {
        extract_file(dir, name, member);
    }
    free(whole);
    free(path);
}

int tool_untar(int argc, char **argv)
{
    (void)argc;
    static char rest[TOOL_BUFFER];
    struct member member;
    /* A directory opened for reading cannot be asked of one that denies it; O_PATH can. */
    base = path_make(tool_root(argv[1]), argv[2], PATH_LINKS_INSIDE);
    if (base < 0)
        tool_fail(errno, NULL);
    tool_cleanup = unlink_partial;
    while (member_next(&member))
        extract(&member);
    restrict_directories();
    /* Whoever writes the archive must not meet a closed pipe in its padding. */
    while (in_some(0, rest, sizeof rest) > 0)
        continue;
    return 0;
}
