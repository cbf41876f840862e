/* Builtin tools: what the host does with files, run as the sandbox's user. See docs/reference/agent-protocol.md. */
#ifndef AIDO_TOOLS_H
#define AIDO_TOOLS_H

/* Runs the tool named argv[0] on the standard streams and returns its exit status. Call it in a process of its own:
   a tool that fails ends the process, and memory is left to the kernel. */
int tool_main(int argc, char **argv);

/* Before a `watch … sync`: the inotify instance to use, and where to tell whether there is more than was asked for. */
void tool_watch_shares(int inotify, unsigned *unsaid);

#endif
