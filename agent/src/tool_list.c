#define _GNU_SOURCE
#include <errno.h>

#include "tool_inodes.h"
#include "tool_io.h"
#include "tool_tree.h"

static bool list_enter(void *context, const struct tree_entry *entry)
{
    out_record(entry->dir, entry->name, entry->st, entry->path, entry->path_size);
    return *(bool *)context;
}

int tool_list(int argc, char **argv)
{
    (void)argc;
    static const struct tree_visitor visitor = {.sorted = true, .path_max = TREE_PATH_MAX, .enter = list_enter};
    bool recursive = tool_number(argv[3], 10, 1) == 1;
    tree_walk(tool_directory(argv[1], argv[2]), &visitor, &recursive);
    return 0;
}

static bool scan_enter(void *context, const struct tree_entry *entry)
{
    uint64_t since = *(uint64_t *)context;
    if (since == 0 || time_ns(entry->st->st_ctim) >= since || time_ns(entry->dir_changed) >= since)
        out_record(entry->dir, entry->name, entry->st, entry->path, entry->path_size);
    return true;
}

int tool_scan(int argc, char **argv)
{
    static const struct tree_visitor visitor = {.path_max = TREE_PATH_MAX, .enter = scan_enter};
    uint64_t since = argc > 3 ? tool_number(argv[3], 10, INT64_MAX) : 0;
    struct stat st;
    int base = tool_directory(argv[1], argv[2]);
    if (fstat(base, &st) < 0)
        tool_fail(errno, NULL);
    out_record(base, "", &st, "", 0);
    tree_walk(base, &visitor, &since);
    return 0;
}

struct usage {
    uint64_t bytes, entries;
    struct inodes seen;
};

static bool du_enter(void *context, const struct tree_entry *entry)
{
    struct usage *usage = context;
    usage->entries++;
    bool counted = entry->st->st_nlink > 1 && !S_ISDIR(entry->st->st_mode) &&
                   inodes_first(&usage->seen, entry->st, "");
    if (!counted)
        usage->bytes += (uint64_t)entry->st->st_blocks * 512;
    return true;
}

int tool_du(int argc, char **argv)
{
    (void)argc;
    static const struct tree_visitor visitor = {.enter = du_enter};
    struct usage usage = {0};
    struct stat st;
    int base = tool_directory(argv[1], argv[2]);
    if (fstat(base, &st) < 0)
        tool_fail(errno, NULL);
    usage.bytes = (uint64_t)st.st_blocks * 512;
    tree_walk(base, &visitor, &usage);
    out_u64(usage.bytes);
    out_u64(usage.entries);
    return 0;
}
