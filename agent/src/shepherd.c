#include "shepherd.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- the command's own process ---- */

static const char default_path[] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/* execve forgets handlers, and what was ignored is heeded since our start. */
void unblock_signals(void) {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
}

static const char *path_of(char **env) {
  for (; *env != NULL; env++)
    if (strncmp(*env, "PATH=", 5) == 0) return *env + 5;
  return default_path;
}

/* execve over the command's own PATH; returns the errno that says most. */
static int execute(char **argv, char **env) {
  if (strchr(argv[0], '/') != NULL) {
    execve(argv[0], argv, env);
    return errno;
  }
  static char file[8192];
  size_t name = strlen(argv[0]);
  int error = ENOENT;
  for (const char *at = path_of(env);; at++) {
    const char *end = strchr(at, ':');
    size_t length = end != NULL ? (size_t)(end - at) : strlen(at);
    if (length + name + 2 <= sizeof file) {
      memcpy(file, at, length);
      if (length > 0) file[length++] = '/';
      memcpy(file + length, argv[0], name + 1);
      execve(file, argv, env);
      if (errno == EACCES) error = EACCES;
      else if (errno != ENOENT && errno != ENOTDIR) return errno;
    }
    if (end == NULL) return error;
    at = end;
  }
}

struct failure {
  int error;
  uint8_t step;
};

/* A pipe and not the shared memory tells of a failure: an emulator may make a plain fork of the clone below. */
static int failures[2];
static uint8_t stack[32768] __attribute__((aligned(16)));

/* The command's own process until execve. It shares the shepherd's memory, which waits meanwhile. */
static int command_main(void *argument) {
  const struct exec_request *request = argument;
  struct failure failure = {0};
  setsid();
  if (request->flags & EXEC_PTY) ioctl(0, TIOCSCTTY, 0);
  unblock_signals();
  setrlimit(RLIMIT_NOFILE, &the.files);
  failure.error = become(request->uid, request->gid, &failure.step);
  if (failure.error == 0) {
    failure.step = STEP_CHDIR;
    failure.error = chdir(request->cwd) == 0 ? 0 : errno;
  }
  if (failure.error == 0) {
    failure.step = STEP_EXECVE;
    failure.error = execute(request->argv, request->env);
  }
  if (write(failures[1], &failure, sizeof failure) < 0) _exit(126);
  _exit(127);
}

/* What does not depend on the command; 0 or an errno. */
static int get_ready(void) {
  prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  return pipe2(failures, O_CLOEXEC) == 0 ? 0 : errno;
}

static pid_t start_command(const struct exec_request *request, struct failure *failure) {
  *failure = (struct failure){0};
  pid_t pid = clone(command_main, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, (void *)(uintptr_t)request);
  if (pid < 0) *failure = (struct failure){errno, STEP_FORK};
  close(failures[1]);
  while (pid > 0 && read(failures[0], failure, sizeof *failure) < 0 && errno == EINTR) continue;
  close(failures[0]);
  return pid;
}

/* ---- the shepherd ---- */

void wear(const struct ends *ends) {
  dup2(ends->input, 0);
  dup2(ends->output[0], 1);
  dup2(ends->output[1], 2);
  if (ends->status != STATUS_FD) dup3(ends->status, STATUS_FD, O_CLOEXEC);
}

void tell(const struct report *report) {
  while (write(STATUS_FD, report, sizeof *report) < 0 && errno == EINTR) continue;
}

static _Noreturn void fail(uint8_t step, int error) {
  tell(&(struct report){.kind = REPORT_FAILED, .error = error, .step = step});
  _exit(1);
}

/* Reaps for the command and whatever it leaves behind; ends when nothing is left. */
static _Noreturn void tend(const struct exec_request *request) {
  struct failure failure;
  pid_t pid = start_command(request, &failure);
  close(0);
  close(1);
  close(2);
  if (failure.error != 0) fail(failure.step, failure.error);
  struct report report = {.kind = REPORT_STARTED, .pid = pid};
  tell(&report);
  for (;;) {
    pid_t ended = wait4(-1, &report.status, 0, &report.usage);
    if (ended < 0 && errno != EINTR) _exit(0);
    if (ended != pid) continue;
    report.kind = REPORT_ENDED;
    tell(&report);
    /* Whoever was told comes first; our own end can wait. */
    sched_yield();
    /* A later process may get the same number. */
    pid = -1;
  }
}

_Noreturn void shepherd_main(const struct exec_request *request) {
  int error = get_ready();
  if (error != 0) fail(STEP_PIPE, error);
  tend(request);
}

/* ---- the spare: one that waits, so that a command need not wait for a fork ---- */

/* What a command is made of. One with more gets a shepherd that is forked for it. */
enum { ORDER_MAX = 32768, ORDERS_FD = STATUS_FD };
static pid_t spare;
static int orders = -1;

static void put_list(struct writer *w, char **list) {
  uint32_t count = 0;
  while (list[count] != NULL) count++;
  put_u32(w, count);
  for (; *list != NULL; list++) put_text(w, *list);
}

static bool write_order(struct buffer *order, const struct exec_request *request) {
  struct writer w = frame_begin(order, EXEC);
  put_u8(&w, request->flags);
  put_u32(&w, request->uid);
  put_u32(&w, request->gid);
  put_text(&w, request->cwd);
  put_list(&w, request->argv);
  put_list(&w, request->env);
  return frame_end(&w) && order->length <= ORDER_MAX;
}

static bool read_order(const uint8_t *bytes, size_t length, struct exec_request *request) {
  struct reader r = reader_of(bytes + 5, length - 5);
  uint32_t argc, envc;
  request->flags = read_u8(&r);
  request->uid = read_u32(&r);
  request->gid = read_u32(&r);
  struct text cwd = read_text(&r);
  request->argv = read_list(&r, &argc);
  request->env = read_list(&r, &envc);
  request->cwd = strndup(cwd.bytes, cwd.length);
  return read_done(&r) && request->argv != NULL && request->env != NULL && request->cwd != NULL;
}

/* What a message may carry besides its bytes. */
union carried {
  struct cmsghdr header;
  char room[CMSG_SPACE(sizeof(struct ends))];
};

static bool send_order(const struct buffer *order, const struct ends *child) {
  union carried carried = {.header = {.cmsg_len = CMSG_LEN(sizeof *child), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS}};
  memcpy(CMSG_DATA(&carried.header), child, sizeof *child);
  struct iovec bytes = {buffer_start(order), order->length};
  struct msghdr message = {.msg_iov = &bytes, .msg_iovlen = 1, .msg_control = &carried, .msg_controllen = sizeof carried};
  return sendmsg(orders, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)order->length;
}

static _Noreturn void spare_main(void) {
  static uint8_t bytes[ORDER_MAX];
  int error = get_ready();
  /* Memory that is written later becomes its own now, and not on the command's way. */
  bytes[0] = stack[sizeof stack - 1] = 1;
  free(malloc(1));
  /* For whoever looks at a list of processes: it is nobody's command. */
  prctl(PR_SET_NAME, "aido-spare");
  union carried carried = {0};
  struct iovec room = {bytes, sizeof bytes};
  struct msghdr message = {.msg_iov = &room, .msg_iovlen = 1, .msg_control = &carried, .msg_controllen = sizeof carried};
  ssize_t got;
  do
    got = recvmsg(ORDERS_FD, &message, MSG_CMSG_CLOEXEC);
  while (got < 0 && errno == EINTR);
  struct ends ends;
  if (got <= 5 || carried.header.cmsg_len != CMSG_LEN(sizeof ends)) _exit(0);
  memcpy(&ends, CMSG_DATA(&carried.header), sizeof ends);
  prctl(PR_SET_NAME, "aido-agent");
  wear(&ends);
  if (error != 0) fail(STEP_PIPE, error);
  /* They came behind the pipe. */
  close_from(failures[1] + 1, failures[1] + 4);
  struct exec_request request = {0};
  if (!read_order(bytes, (size_t)got, &request)) fail(STEP_SHEPHERD, ENOMEM);
  tend(&request);
}

void spare_make(void) {
  int fds[2];
  if (spare != 0 || the.ending || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0) return;
  pid_t pid = fork();
  if (pid == 0) {
    if (fds[1] != ORDERS_FD) dup3(fds[1], ORDERS_FD, O_CLOEXEC);
    int highest = fds[1] > fds[0] ? fds[1] : fds[0];
    close_from(ORDERS_FD + 1, the.highest_fd > highest ? the.highest_fd : highest);
    spare_main();
  }
  close(fds[1]);
  if (pid < 0) {
    close(fds[0]);
    return;
  }
  spare = pid;
  orders = fds[0];
  if (orders > the.highest_fd) the.highest_fd = orders;
  if (pid > the.highest) the.highest = pid;
}

bool spare_is(pid_t pid) { return pid == spare && pid != 0; }

void spare_end(void) {
  if (spare == 0) return;
  close(orders);
  spare = 0;
}

pid_t spare_take(const struct exec_request *request, const struct ends *child) {
  if (spare == 0) return 0;
  pid_t pid = spare;
  struct buffer order = {0};
  siginfo_t ended = {0};
  /* It may have been killed with all else in the sandbox. */
  bool lives = waitid(P_PID, (id_t)pid, &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid == 0;
  bool taken = lives && write_order(&order, request) && send_order(&order, child);
  buffer_free(&order);
  if (!taken) return 0;
  spare_end();
  return pid;
}
