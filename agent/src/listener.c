#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "agent.h"

/* Binds by base name from within the directory, since the path may be longer than a socket address, and under another
   name until it listens: who sees the socket can connect to it. */
int open_listener(const char *path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  const char *slash = strrchr(path, '/');
  const char *name = slash != NULL ? slash + 1 : path;
  size_t length = slash != NULL ? (size_t)(slash - path) : 0;
  char directory[4096];
  if (strlen(name) + 5 > sizeof address.sun_path || name[0] == 0 || length >= sizeof directory) {
    errno = ENAMETOOLONG;
    return -1;
  }
  memcpy(directory, path, length);
  directory[length] = 0;
  if (slash != NULL && chdir(length > 0 ? directory : "/") != 0) return -1;
  memcpy(address.sun_path, name, strlen(name));
  memcpy(address.sun_path + strlen(name), ".new", 5);
  unlink(address.sun_path);
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  umask(0177);
  if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) != 0 || listen(fd, MAX_CONNS) != 0) return -1;
  umask(022);
  struct stat status;
  /* Who owns the directory is who will connect. */
  if (stat(".", &status) == 0 && status.st_uid != geteuid() &&
      lchown(address.sun_path, status.st_uid, status.st_gid) != 0)
    errno = 0;
  return rename(address.sun_path, name) == 0 && chdir("/") == 0 ? fd : -1;
}

int take_listener(int handed) {
  int listening = 0;
  socklen_t length = sizeof listening;
  if (getsockopt(handed, SOL_SOCKET, SO_ACCEPTCONN, &listening, &length) != 0) return -1;
  if (!listening) {
    errno = EINVAL;
    return -1;
  }
  if (handed != 3 && dup2(handed, 3) < 0) return -1;
  return fcntl(3, F_SETFD, FD_CLOEXEC) == 0 && fcntl(3, F_SETFL, O_NONBLOCK) == 0 ? 3 : -1;
}
