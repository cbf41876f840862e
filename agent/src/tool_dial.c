#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tool_io.h"

static int connect_to(const struct sockaddr *address, socklen_t size)
{
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    if (connect(fd, address, size) == 0)
        return fd;
    int error = errno;
    close(fd);
    errno = error;
    return -1;
}

/* The sandbox's own loopback; what listens there may have taken either family. */
static int dial(uint16_t port)
{
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(port)};
    four.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = connect_to((struct sockaddr *)&four, sizeof four);
    if (fd >= 0)
        return fd;
    int error = errno;
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    fd = connect_to((struct sockaddr *)&six, sizeof six);
    if (fd < 0)
        errno = error;
    return fd;
}

/* Copies what is there; false at the end. */
static bool copy(int from, int to, char *buffer)
{
    ssize_t n = read(from, buffer, TOOL_BUFFER);
    if (n < 0)
        return errno == EINTR;
    return n > 0 && write_all(to, buffer, (size_t)n);
}

int tool_dial(int argc, char **argv)
{
    (void)argc;
    static char buffer[TOOL_BUFFER];
    uint64_t port = tool_number(argv[1], 10, 65535);
    if (port == 0)
        tool_usage("dial port");
    int fd = dial((uint16_t)port);
    if (fd < 0)
        tool_fail(errno, "nothing answers on that port");
    /* One byte says that the connection stands, before anything of the other side. */
    out_u8(1);
    out_flush();
    struct pollfd ends[2] = {{.fd = 0, .events = POLLIN}, {.fd = fd, .events = POLLIN}};
    while (ends[1].fd >= 0) {
        if (poll(ends, 2, -1) < 0) {
            if (errno == EINTR)
                continue;
            tool_fail(errno, NULL);
        }
        if (ends[0].fd >= 0 && ends[0].revents && !copy(0, fd, buffer)) {
            shutdown(fd, SHUT_WR);
            ends[0].fd = -1;
        }
        if (ends[1].revents && !copy(fd, 1, buffer))
            ends[1].fd = -1;
    }
    return 0;
}
