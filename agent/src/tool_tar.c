#define _GNU_SOURCE
#include "tool_tar.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "path.h"
#include "tool_inodes.h"
#include "tool_io.h"
#include "tool_tree.h"

#define SIZE_MAX_OCTAL 077777777777u /* 8 GiB - 1 */
#define ID_MAX_OCTAL 07777777u

struct archive {
    struct inodes seen;
    uint64_t unreadable;
    int error;
    char first[256];
};

/* Records of an extended header, gathered before the member's own. */
static char *pax;
static size_t pax_used, pax_cap;

static void pax_add(const char *key, const char *value, size_t value_size)
{
    /* A record begins with its own length, digits included. */
    size_t base = 1 + strlen(key) + 1 + value_size + 1, size = base, before;
    do {
        before = size;
        size = base + strlen(tool_decimal(before));
    } while (size != before);
    if (pax_used + size + 1 > pax_cap)
        pax = tool_alloc(pax, pax_cap = pax_used + size + 1 + TAR_BLOCK);
    char *at = stpcpy(pax + pax_used, tool_decimal(size));
    *at++ = ' ';
    at = stpcpy(at, key);
    *at++ = '=';
    memcpy(at, value, value_size);
    at[value_size] = '\n';
    pax_used += size;
}

static void pax_number(const char *key, uint64_t value)
{
    char text[24];
    strcpy(text, tool_decimal(value));
    pax_add(key, text, strlen(text));
}

static void octal(char *field, size_t size, uint64_t value)
{
    field[size - 1] = '\0';
    for (size_t i = size - 1; i-- > 0; value >>= 3)
        field[i] = (char)('0' + (value & 7));
}

static bool is_ascii(const char *text)
{
    while (*text > 0)
        text++;
    return *text == '\0';
}

static void finish(struct tar_header *header)
{
    memcpy(header->magic, "ustar", 6);
    memcpy(header->version, "00", 2);
    octal(header->checksum, 7, (uint64_t)tar_checksum(header, 0));
    header->checksum[7] = ' ';
    out_bytes(header, sizeof *header);
}

static void pad(uint64_t size)
{
    out_zeros((TAR_BLOCK - size % TAR_BLOCK) % TAR_BLOCK);
}

static void pax_write(void)
{
    if (pax_used == 0)
        return;
    struct tar_header header = {.name = "PaxHeaders/aido", .type = 'x'};
    octal(header.mode, 8, 0644);
    octal(header.uid, 8, 0);
    octal(header.gid, 8, 0);
    octal(header.mtime, 12, 0);
    octal(header.size, 12, pax_used);
    finish(&header);
    out_bytes(pax, pax_used);
    pad(pax_used);
    pax_used = 0;
}

/* Puts the name into the header's fields, split at a slash when it is long; false when it does not fit. */
static bool put_name(struct tar_header *header, const char *name, size_t size)
{
    if (size <= sizeof header->name) {
        memcpy(header->name, name, size);
        return true;
    }
    size_t at = size - sizeof header->name - 1;
    while (at < size && name[at] != '/')
        at++;
    if (at == 0 || at > sizeof header->prefix || at + 1 >= size) {
        memcpy(header->name, name, sizeof header->name);
        return false;
    }
    memcpy(header->prefix, name, at);
    memcpy(header->name, name + at + 1, size - at - 1);
    return true;
}

static uint64_t fit(const char *key, uint64_t value, uint64_t max)
{
    if (value <= max)
        return value;
    pax_number(key, value);
    return 0;
}

static void put_header(char type, const struct stat *st, const char *path, const char *link)
{
    struct tar_header header = {.type = type};
    size_t path_size = strlen(path), link_size = strlen(link);
    char *slashed = NULL;
    if (type == '5') {
        slashed = tool_alloc(NULL, path_size + 2);
        memcpy(slashed, path, path_size);
        memcpy(slashed + path_size++, "/", 2);
        path = slashed;
    }
    /* Outside ASCII a reader needs the extended header to know the encoding. */
    if (!put_name(&header, path, path_size) || !is_ascii(path))
        pax_add("path", path, path_size);
    memcpy(header.link, link, link_size < sizeof header.link ? link_size : sizeof header.link);
    if (link_size > sizeof header.link || !is_ascii(link))
        pax_add("linkpath", link, link_size);
    octal(header.mode, 8, st->st_mode & 07777);
    octal(header.uid, 8, fit("uid", st->st_uid, ID_MAX_OCTAL));
    octal(header.gid, 8, fit("gid", st->st_gid, ID_MAX_OCTAL));
    octal(header.size, 12, fit("size", type == '0' ? (uint64_t)st->st_size : 0, SIZE_MAX_OCTAL));
    octal(header.mtime, 12, fit("mtime", time_ns(st->st_mtim) / 1000000000u, SIZE_MAX_OCTAL));
    pax_write();
    finish(&header);
    free(slashed);
}

/* The header has promised a size: what the file lacks by now is zeros, what it has more is left. */
static void put_content(int fd, uint64_t size)
{
    static char buffer[TOOL_BUFFER];
    uint64_t left = size;
    while (left > 0) {
        ssize_t n = read(fd, buffer, left < sizeof buffer ? (size_t)left : sizeof buffer);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        out_bytes(buffer, (size_t)n);
        left -= (uint64_t)n;
    }
    out_zeros(left);
    pad(size);
}

static void unreadable(void *context, const char *path, int error)
{
    struct archive *archive = context;
    if (archive->unreadable++ == 0) {
        archive->error = error;
        strncpy(archive->first, path, sizeof archive->first - 1);
    }
}

static void put_file(struct archive *archive, const struct tree_entry *entry)
{
    struct stat st;
    int fd = openat(entry->dir, entry->name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC);
    if (fd < 0) {
        if (errno != ENOENT)
            unreadable(archive, entry->path, errno);
        return;
    }
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
        const char *first = st.st_nlink > 1 ? inodes_first(&archive->seen, &st, entry->path) : NULL;
        put_header(first ? '1' : '0', &st, entry->path, first ? first : "");
        if (!first)
            put_content(fd, (uint64_t)st.st_size);
    }
    close(fd);
}

static bool tar_enter(void *context, const struct tree_entry *entry)
{
    char target[PATH_LIMIT];
    mode_t mode = entry->st->st_mode;
    if (S_ISREG(mode)) {
        put_file(context, entry);
    } else if (S_ISDIR(mode)) {
        put_header('5', entry->st, entry->path, "");
    } else if (S_ISLNK(mode)) {
        ssize_t size = readlinkat(entry->dir, entry->name, target, sizeof target - 1);
        if (size > 0) {
            target[size] = '\0';
            put_header('2', entry->st, entry->path, target);
        }
    }
    return true;
}

static void tar_one(struct archive *archive, int root, const char *path)
{
    struct place place;
    struct stat st;
    if (path_target(root, path, false, &place) < 0 || fstatat(place.dir, place.name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        tool_fail(errno, NULL);
    if (!S_ISREG(st.st_mode))
        tool_fail(EINVAL, "neither a directory nor a regular file");
    struct tree_entry entry = {.dir = place.dir, .name = place.name, .path = place.name, .st = &st};
    put_file(archive, &entry);
}

int tool_tar(int argc, char **argv)
{
    (void)argc;
    static struct archive archive;
    static const struct tree_visitor visitor = {
        .sorted = true, .path_max = TREE_PATH_MAX, .enter = tar_enter, .failed = unreadable};
    int root = tool_root(argv[1]);
    int base = path_open(root, argv[2], O_RDONLY | O_DIRECTORY | O_NONBLOCK, PATH_LINKS_INSIDE);
    if (base >= 0)
        tree_walk(base, &visitor, &archive);
    else if (errno == ENOTDIR)
        tar_one(&archive, root, argv[2]);
    else
        tool_fail(errno, NULL);
    out_zeros(2 * TAR_BLOCK);
    out_flush();
    if (archive.unreadable > 0)
        tool_fail(archive.error, archive.first);
    return 0;
}
