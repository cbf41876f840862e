#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "tool_io.h"

enum { ANSWER_LIMIT = 16384, REQUEST_LIMIT = 8192, PATIENCE_SECONDS = 1, WAITING = 64 };
static const char refusal[] = "HTTP/1.1 403 \r\nContent-Length: 0\r\n\r\n", stale[] = "HTTP/1.1 503 \r\nContent-Length: 0\r\n\r\n";

static time_t seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return now.tv_sec;
}

/* After a line's end and these small letters, in either case; the C library's own would take 2 KB of the binary. */
static const char *after(const char *text, const char *word)
{
    for (; (text = strchr(text, '\n')) != NULL;) {
        size_t i = 0;
        for (text++; word[i] && (text[i] == word[i] || (text[i] | 32) == word[i]); i++)
            continue;
        if (!word[i])
            return text + i;
    }
    return NULL;
}

/* What is there when the request's head is whole, too long or too slow. */
static void read_head(int fd, char *head)
{
    time_t end = seconds_now() + PATIENCE_SECONDS;
    size_t used = 0;
    ssize_t n;
    do {
        n = read(fd, head + used, REQUEST_LIMIT - used);
        used += n > 0 ? (size_t)n : 0;
        head[used] = '\0';
    } while (n > 0 && !after(head, "\r\n") && used < REQUEST_LIMIT && seconds_now() <= end);
}

/* How long it takes says nothing about the token. */
static bool is_allowed(const char *head, const char *token)
{
    const char *at = after(head, "authorization:");
    if (memcmp(head, "GET ", 4) != 0 || !at || !after(at, "\r\n"))
        return false;
    at += strspn(at, " ");
    size_t size = strcspn(at, "\r");
    unsigned char differs = size != strlen(token);
    for (size_t i = 0; token[i] && i < size; i++)
        differs |= (unsigned char)(token[i] ^ at[i]);
    return !differs;
}

static int listen_on(uint16_t port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;
    /* The next one listens before this one ends, so that there is always one. */
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &yes, sizeof yes) != 0 ||
        bind(fd, (struct sockaddr *)&address, sizeof address) != 0 || listen(fd, WAITING) != 0)
        tool_fail(errno, "that port");
    return fd;
}

int tool_offer(int argc, char **argv)
{
    (void)argc;
    static char told[ANSWER_LIMIT + 1], head[REQUEST_LIMIT + 1];
    uint64_t port = tool_number(argv[1], 10, 65535);
    time_t until = seconds_now() + (time_t)tool_number(argv[2], 10, 1000000);
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    size_t used = 0;
    for (size_t n; used <= ANSWER_LIMIT && (n = in_some(0, told + used, ANSWER_LIMIT + 1 - used)) > 0;)
        used += n;
    char *answer = memchr(told, '\n', used);
    if (port == 0 || !answer || answer == told || used > ANSWER_LIMIT)
        tool_usage("offer port seconds, the token in a line and the answer on stdin");
    *answer++ = '\0';
    int listener = listen_on((uint16_t)port);
    out_u8(1);
    out_flush();
    for (;;) {
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0) {
            /* Too many open files or too little memory on the machine: that passes. */
            poll(NULL, 0, 10);
            continue;
        }
        struct timeval patience = {.tv_sec = PATIENCE_SECONDS};
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
        read_head(fd, head);
        if (!is_allowed(head, told))
            write_all(fd, refusal, sizeof refusal - 1);
        else if (seconds_now() >= until)
            write_all(fd, stale, sizeof stale - 1);
        else
            write_all(fd, answer, used - (size_t)(answer - told));
        close(fd);
    }
}
