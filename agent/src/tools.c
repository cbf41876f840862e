#define _GNU_SOURCE
#include "tools.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>

#include "tool_io.h"

static const struct tool {
    const char *name;
    int (*run)(int argc, char **argv);
    int least, most; /* arguments after the name */
    const char *usage;
} tools[] = {
    {"read", tool_read, 2, 4, "read root path [offset [length]]"},
    {"write", tool_write, 3, 4, "write root path mode|- [append]"},
    {"stat", tool_stat, 2, 2, "stat root path"},
    {"list", tool_list, 3, 3, "list root path 0|1"},
    {"mkdir", tool_mkdir, 3, 3, "mkdir root path mode"},
    {"move", tool_move, 3, 3, "move root from to"},
    {"remove", tool_remove, 2, 2, "remove root path"},
    {"prune", tool_prune, 2, 2, "prune root path"},
    {"tar", tool_tar, 2, 2, "tar root path"},
    {"untar", tool_untar, 2, 2, "untar root path"},
    {"scan", tool_scan, 2, 3, "scan root path [sinceNs]"},
    {"cat", tool_cat, 2, 2, "cat root path"},
    {"watch", tool_watch, 2, 3, "watch root path [sync]"},
    {"du", tool_du, 2, 2, "du root path"},
    {"dial", tool_dial, 1, 1, "dial port"},
    {"offer", tool_offer, 2, 2, "offer port seconds"},
};

int tool_main(int argc, char **argv)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    /* Forked, not executed: handlers of the supervisor would still be set. */
    for (int number = 1; number < 32; number++)
        signal(number, SIG_DFL);
    /* A reader that went away is an EPIPE like any other failure. */
    signal(SIGPIPE, SIG_IGN);
    umask(0);
    for (size_t i = 0; argc > 0 && i < sizeof tools / sizeof *tools; i++) {
        const struct tool *tool = &tools[i];
        if (strcmp(argv[0], tool->name) != 0)
            continue;
        if (argc - 1 < tool->least || argc - 1 > tool->most)
            tool_usage(tool->usage);
        int status = tool->run(argc, argv);
        out_flush();
        return status;
    }
    tool_usage("a tool's name: read write stat list mkdir move remove prune tar untar scan cat watch du dial offer");
}
