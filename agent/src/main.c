#include <string.h>
#include <unistd.h>

#include "agent.h"
#include "tools.h"

static void say(int fd, const char *text) {
  if (write(fd, text, strlen(text)) < 0) return;
}

int complain(int code, const char *what, int error) {
  say(2, "aido-agent: ");
  say(2, what);
  say(2, ": ");
  say(2, strerror(error));
  say(2, "\n");
  return code;
}

int main(int argc, char **argv) {
  const char *command = argc > 1 ? argv[1] : "";
  if (strcmp(command, "supervise") == 0) return supervise_main(argc - 1, argv + 1);
  if (strcmp(command, "connect") == 0) return connect_main(argc - 1, argv + 1);
  if (strcmp(command, "launch") == 0) return launch_main(argc - 1, argv + 1);
  if (strcmp(command, "tool") == 0) return tool_main(argc - 2, argv + 2);
  if (strcmp(command, "--version") == 0) {
    say(1, "aido-agent " AGENT_VERSION " protocol 1\n");
    return 0;
  }
  say(2,
      "usage: aido-agent supervise --socket PATH [--cgroup DIR] [--main-linger MS]\n"
      "       aido-agent connect --socket PATH\n"
      "       aido-agent launch [--cgroup-procs FILE]... [--uid N --gid N] [--rlimit NAME=N]... [--pidfile FILE]\n"
      "                         [--log FILE] -- PROGRAM [ARGUMENT]...\n"
      "       aido-agent tool NAME [ARGUMENT]...\n"
      "       aido-agent --version\n");
  return 125;
}
