#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "path.h"
#include "tool_io.h"
#include "tool_tree.h"
#include "tool_watch_nodes.h"
#include "tool_watch_sync.h"

/* Whoever asked is gone when no question comes for so long: a tool outlives its host's connection. */
#define SYNC_IDLE_MS (15 * 60 * 1000)

#define MASK                                                                                                        \
    (IN_CREATE | IN_DELETE | IN_MODIFY | IN_ATTRIB | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF | IN_ONLYDIR |     \
     IN_EXCL_UNLINK)

enum kind { READY = 0, CREATED = 1, MODIFIED = 2, REMOVED = 3, OVERFLOW = 4 };

static int inotify = -1;
static const char *root_path, *base_path;
static struct stat base_stat;
/* Collect what changed and tell it when asked, instead of telling events as they come. */
static bool is_sync;
/* See watch.h; of no use to anyone when there is no supervisor. */
static unsigned own_unsaid, *unsaid = &own_unsaid;
static bool is_shared;

void tool_watch_shares(int shared, unsigned *flag)
{
    inotify = shared;
    unsaid = flag;
    is_shared = true;
}

static void report(enum kind kind, const struct node *node, const char *name)
{
    size_t size = 0;
    const char *path = node ? node_path(node, name, &size) : "";
    if (is_sync && kind == OVERFLOW)
        node ? dirty_always() : dirty_everything();
    else if (is_sync)
        dirty_add(path, size, kind == REMOVED);
    if (is_sync)
        return;
    out_u8((uint8_t)kind);
    out_str(path, size);
}

static void unwatch(int wd)
{
    inotify_rm_watch(inotify, wd);
}

/* Watches the directory fd, which is name beneath up; NULL when that is not possible. */
static struct node *watch_directory(int fd, struct node *up, const char *name)
{
    /* inotify takes paths only, and one of any depth must do: the directory itself is `.` from inside. */
    int wd = fchdir(fd) < 0 ? -1 : inotify_add_watch(inotify, ".", MASK | (is_sync ? IN_CLOSE_WRITE : 0));
    int error = errno;
    /* A directory that is somewhere's `.` is not gone for the kernel when it is removed. */
    (void)!chdir("/");
    errno = error;
    /* A directory mounted into itself has one watch for both places. */
    for (const struct node *above = up; wd >= 0 && above; above = above->up)
        if (above->wd == wd)
            return NULL;
    if (wd >= 0)
        return node_put(wd, up, name);
    if (!up)
        tool_fail(errno, NULL);
    /* What cannot be read cannot be scanned either; what is gone is told by the directory that held it. */
    if (errno == ENOSPC || (is_sync && errno != EACCES && errno != ENOENT))
        report(OVERFLOW, up, name);
    return NULL;
}

struct adding {
    struct node *top; /* the directory the walk began in */
    bool report;
    struct node **above; /* nodes from top down to where the walk is */
    size_t depth, cap;
};

static void descend(struct adding *adding, struct node *node)
{
    if (adding->depth == adding->cap)
        adding->above = tool_alloc(adding->above, (adding->cap = adding->cap * 2 + 64) * sizeof *adding->above);
    adding->above[adding->depth++] = node;
}

static bool add_enter(void *context, const struct tree_entry *entry)
{
    struct adding *adding = context;
    struct node *up = adding->above[adding->depth - 1];
    if (adding->report)
        report(CREATED, up, entry->name);
    if (!S_ISDIR(entry->st->st_mode))
        return false;
    int fd = openat(entry->dir, entry->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct node *node = fd < 0 ? NULL : watch_directory(fd, up, entry->name);
    if (fd >= 0)
        close(fd);
    /* Without a watch of its own there is nothing to hang deeper ones on. */
    if (node)
        descend(adding, node);
    return node != NULL;
}

static void add_leave(void *context, const struct tree_entry *entry)
{
    (void)entry;
    ((struct adding *)context)->depth--;
}

/* Watches fd and all beneath it. The watch comes before the look inside, so nothing is missed; it may be told twice. */
static void add_tree(int fd, struct node *up, const char *name, bool tell)
{
    static struct adding adding;
    static const struct tree_visitor visitor = {
        .path_max = TREE_PATH_MAX, .enter = add_enter, .leave = add_leave};
    adding.depth = 0;
    adding.report = tell;
    struct node *top = watch_directory(fd, up, name);
    if (!top) {
        close(fd);
        return;
    }
    descend(&adding, top);
    tree_walk(fd, &visitor, &adding);
}

static void start(void)
{
    if (!is_shared) {
        if (inotify >= 0)
            close(inotify);
        inotify = inotify_init1(IN_CLOEXEC | (is_sync ? IN_NONBLOCK : 0));
    }
    if (inotify < 0)
        tool_fail(errno, NULL);
    int fd = tool_directory(root_path, base_path);
    if (fstat(fd, &base_stat) < 0)
        tool_fail(errno, NULL);
    add_tree(fd, NULL, "", false);
}

/* The base is opened each time: held open it could be removed without a word. */
static int open_base(void)
{
    int root = open(root_path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int base = root < 0 ? -1 : path_open(root, base_path, O_PATH | O_DIRECTORY, PATH_LINKS_INSIDE);
    if (root >= 0)
        close(root);
    return base;
}

static void directory_came(struct node *up, const char *name)
{
    size_t size;
    struct stat st;
    int base = open_base();
    int fd = -1;
    if (base >= 0 && fstat(base, &st) == 0 && st.st_ino == base_stat.st_ino && st.st_dev == base_stat.st_dev)
        fd = path_open(base, node_path(up, name, &size), O_RDONLY | O_DIRECTORY | O_NONBLOCK, PATH_LINKS_NONE);
    int error = errno;
    if (base >= 0)
        close(base);
    if (fd >= 0)
        add_tree(fd, up, name, true);
    else if (is_sync && error == EACCES)
        dirty_everything();
}

/* False when the watched directory itself is gone. */
static bool handle(const struct inotify_event *event)
{
    struct node *node = node_find(event->wd);
    const char *name = event->len > 0 ? event->name : "";
    if (!node)
        return true;
    if (event->mask & (IN_IGNORED | IN_DELETE_SELF | IN_UNMOUNT)) {
        bool is_base = !node->up;
        if (is_base)
            report(REMOVED, node, "");
        node_drop(node, unwatch);
        return !is_base;
    }
    /* A directory's own attributes are told by the one that holds it. */
    if (!name[0])
        return true;
    if (event->mask & (IN_CREATE | IN_MOVED_TO)) {
        report(CREATED, node, name);
        if (event->mask & IN_ISDIR)
            directory_came(node, name);
    } else if (event->mask & (IN_DELETE | IN_MOVED_FROM)) {
        struct node *child = event->mask & IN_ISDIR ? node_child(node, name) : NULL;
        report(REMOVED, node, name);
        if (child)
            node_drop(child, unwatch);
    } else if (event->mask & (IN_MODIFY | IN_ATTRIB | IN_CLOSE_WRITE)) {
        report(MODIFIED, node, name);
        /* A directory that can be read again shows what it holds. */
        if (is_sync && event->mask & IN_ISDIR)
            directory_came(node, name);
    }
    return true;
}

static void start_over(void)
{
    node_drop(NULL, is_shared ? unwatch : NULL);
    start();
    /* After the new watches: who looks at everything now misses nothing. */
    report(OVERFLOW, NULL, "");
}

static bool handle_all(const char *events, size_t n)
{
    for (size_t at = 0; at < n;) {
        const struct inotify_event *event = (const void *)(events + at);
        at += sizeof *event + event->len;
        if (event->mask & IN_Q_OVERFLOW) {
            start_over();
            break;
        }
        if (!handle(event))
            return false;
    }
    return true;
}

static char events[TOOL_BUFFER] __attribute__((aligned(__alignof__(struct inotify_event))));

static void set_unsaid(bool is)
{
    __atomic_store_n(unsaid, is, __ATOMIC_SEQ_CST);
}

/* Takes in what has happened until now; a change is queued before the call that made it returns. */
static bool drain(void)
{
    set_unsaid(true);
    for (;;) {
        ssize_t n = read(inotify, events, sizeof events);
        if (n < 0 && errno == EAGAIN)
            return true;
        if (n < 0 && errno != EINTR)
            tool_fail(errno, NULL);
        if (n > 0 && !handle_all(events, (size_t)n))
            return false;
    }
}

static int answer_questions(void)
{
    char questions[64];
    for (;;) {
        struct pollfd wait[2] = {{.fd = 0, .events = POLLIN}, {.fd = inotify, .events = POLLIN}};
        int ready = poll(wait, 2, SYNC_IDLE_MS);
        if (ready == 0)
            return 0;
        if (ready < 0)
            continue;
        size_t asked = wait[0].revents ? in_some(0, questions, sizeof questions) : 0;
        if (wait[0].revents && asked == 0)
            return 0;
        if (!drain())
            return 0;
        for (size_t i = 0; i < asked; i++) {
            int base = open_base();
            if (base < 0)
                return 0;
            bool is_all = dirty_answer(base);
            close(base);
            /* Whoever has the answer must find it so. */
            set_unsaid(!is_all);
            out_flush();
        }
    }
}

int tool_watch(int argc, char **argv)
{
    root_path = argv[1];
    base_path = argv[2];
    is_sync = argc > 3;
    if (is_sync && strcmp(argv[3], "sync") != 0)
        tool_usage("watch root path [sync]");
    start();
    if (is_sync) {
        set_unsaid(false);
        out_u8(READY);
        out_flush();
        return answer_questions();
    }
    report(READY, NULL, "");
    do
        out_flush();
    while (handle_all(events, in_some(inotify, events, sizeof events)));
    return 0;
}
