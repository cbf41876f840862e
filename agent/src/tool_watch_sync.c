#define _GNU_SOURCE
#include "tool_watch_sync.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "path.h"
#include "tool_io.h"

/* Beyond these a look at everything is cheaper. */
#define PATHS_MAX 32768
#define BYTES_MAX (8u << 20)
#define BUCKETS 16384
/* Contents that come with the answer: of small files, and not too many, so that an answer stays short. */
#define CONTENT_MAX 16384
#define CONTENTS_MAX (128 * 1024)

enum part { END = 0, RECORD = 1, CONTENT = 2, GONE = 3, EVERYTHING = 4 };

struct dirty {
    struct dirty *next, *newer; /* in its bucket; in order of arrival */
    bool gone;
    size_t size;
    char path[];
};

static struct dirty *buckets[BUCKETS], *oldest, **newest = &oldest;
static size_t count, bytes;
static bool everything, always;

static void forget(void)
{
    while (oldest) {
        struct dirty *newer = oldest->newer;
        free(oldest);
        oldest = newer;
    }
    newest = &oldest;
    count = bytes = 0;
    memset(buckets, 0, sizeof buckets);
}

void dirty_everything(void)
{
    if (!everything)
        forget();
    everything = true;
}

void dirty_always(void)
{
    always = true;
    dirty_everything();
}

void dirty_add(const char *path, size_t size, bool gone)
{
    if (everything)
        return;
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ (unsigned char)path[i]) * 16777619u;
    struct dirty **bucket = &buckets[hash % BUCKETS];
    struct dirty *known = *bucket;
    while (known && (known->size != size || memcmp(known->path, path, size) != 0))
        known = known->next;
    if (known) {
        known->gone |= gone;
        return;
    }
    if (count == PATHS_MAX || bytes + size > BYTES_MAX) {
        dirty_everything();
        return;
    }
    struct dirty *dirty = tool_alloc(NULL, sizeof *dirty + size + 1);
    *dirty = (struct dirty){.next = *bucket, .gone = gone, .size = size};
    memcpy(dirty->path, path, size);
    dirty->path[size] = '\0';
    *bucket = *newest = dirty;
    newest = &dirty->newer;
    count++;
    bytes += size;
}

/* The content of a small file that rests; false when it is none. */
static bool read_content(int dir, const char *name, struct stat *st, char *content)
{
    struct stat after;
    int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool is_read = fstat(fd, st) == 0 && S_ISREG(st->st_mode) && st->st_size <= CONTENT_MAX &&
                   read(fd, content, CONTENT_MAX + 1) == st->st_size && fstat(fd, &after) == 0 &&
                   after.st_size == st->st_size && time_ns(after.st_ctim) == time_ns(st->st_ctim);
    close(fd);
    return is_read;
}

/* Returns how much content it told. */
static size_t tell(int base, const struct dirty *dirty, bool with_content)
{
    static char content[CONTENT_MAX + 1];
    struct place place = {.dir = -1};
    struct stat st, opened;
    bool is_there = path_place(base, dirty->path, false, PATH_LINKS_NONE, &place) == 0 &&
                    fstatat(place.dir, place.name, &st, AT_SYMLINK_NOFOLLOW) == 0;
    bool has_content = is_there && with_content && S_ISREG(st.st_mode) && st.st_size <= CONTENT_MAX &&
                       read_content(place.dir, place.name, &opened, content);
    if (dirty->gone || !is_there) {
        out_u8(GONE);
        out_str(dirty->path, dirty->size);
    }
    if (has_content)
        st = opened;
    if (is_there) {
        out_u8(has_content ? CONTENT : RECORD);
        out_record(place.dir, place.name, &st, dirty->path, dirty->size);
    }
    if (has_content)
        out_str(content, (size_t)st.st_size);
    if (place.dir >= 0)
        close(place.dir);
    return has_content ? (size_t)st.st_size : 0;
}

bool dirty_answer(int base)
{
    size_t told = 0;
    for (const struct dirty *dirty = oldest; dirty; dirty = dirty->newer)
        told += tell(base, dirty, told < CONTENTS_MAX);
    if (everything || always)
        out_u8(EVERYTHING);
    forget();
    everything = always;
    out_u8(END);
    return !always;
}
