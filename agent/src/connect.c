#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "agent.h"

struct flow {
  int from, to;
  size_t start, length;
  bool over;
  uint8_t bytes[65536];
};

/* 1 when something moved or may move later, 0 when this side is done with everything delivered, -1 on error. */
static int move(struct flow *f, bool readable, bool writable) {
  if (readable && f->length == 0 && !f->over) {
    ssize_t got = read(f->from, f->bytes, sizeof f->bytes);
    if (got < 0 && errno != EAGAIN && errno != EINTR) return -1;
    if (got == 0) f->over = true;
    f->start = 0;
    f->length = got > 0 ? (size_t)got : 0;
    writable = f->length > 0;
  }
  if (writable && f->length > 0) {
    ssize_t put = write(f->to, f->bytes + f->start, f->length);
    if (put < 0 && errno != EAGAIN && errno != EINTR) return -1;
    if (put > 0) {
      f->start += (size_t)put;
      f->length -= (size_t)put;
    }
  }
  return f->over && f->length == 0 ? 0 : 1;
}

static int copy(int fd) {
  static struct flow to_socket, from_socket;
  to_socket.from = 0;
  to_socket.to = from_socket.from = fd;
  from_socket.to = 1;
  for (;;) {
    bool out_waits = from_socket.length > 0, in_waits = to_socket.length > 0;
    struct pollfd fds[3] = {
        {.fd = in_waits ? -1 : 0, .events = POLLIN},
        {.fd = fd, .events = (short)((out_waits ? 0 : POLLIN) | (in_waits ? POLLOUT : 0))},
        {.fd = 1, .events = out_waits ? POLLOUT : 0},
    };
    if (poll(fds, 3, -1) < 0 && errno != EINTR) return 1;
    if (fds[2].revents & (POLLERR | POLLNVAL)) return 0;
    short hangup = POLLHUP | POLLERR;
    int a = move(&to_socket, fds[0].revents != 0, (fds[1].revents & POLLOUT) != 0);
    int b = move(&from_socket, (fds[1].revents & (POLLIN | hangup)) != 0, (fds[2].revents & POLLOUT) != 0);
    if (a < 0 || b < 0) return 1;
    if (a == 0 || b == 0) return 0;
  }
}

int connect_main(int argc, char **argv) {
  if (argc != 3 || strcmp(argv[1], "--socket") != 0) return complain(1, "connect --socket PATH", EINVAL);
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  if (strlen(argv[2]) >= sizeof address.sun_path) return complain(1, argv[2], ENAMETOOLONG);
  memcpy(address.sun_path, argv[2], strlen(argv[2]) + 1);
  /* The token passes through our memory. */
  prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) != 0) return complain(1, argv[2], errno);
  fcntl(fd, F_SETFL, O_NONBLOCK);
  return copy(fd);
}
