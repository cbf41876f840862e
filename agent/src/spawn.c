#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent.h"
#include "tools.h"

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

static const char default_path[] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

const char *step_name(uint8_t step) {
  static const char *const names[] = {"exec",   "fork",   "pipe",  "pty",    "capabilities", "setgroups",
                                      "setgid", "setuid", "chdir", "execve", "shepherd"};
  return step < sizeof names / sizeof *names ? names[step] : names[0];
}

void close_from(int first, int last) {
  if (first <= last && syscall(SYS_close_range, first, ~0U, 0) == 0) return;
  for (int fd = first; fd <= last; fd++) close(fd);
}

void heed_signals(void) {
  struct sigaction action;
  for (int signal = 1; signal < NSIG; signal++) {
    if (sigaction(signal, NULL, &action) != 0 || action.sa_handler != SIG_IGN) continue;
    action.sa_handler = SIG_DFL;
    sigaction(signal, &action, NULL);
  }
}

/* execve forgets handlers, and what was ignored is heeded since our start. */
static void unblock_signals(void) {
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

/* Where the shepherd hears of a failed start: closed by execve, and above what the command inherits. */
enum { STATUS_FD = 3, WATCH_FD };
static int failures;

struct failure {
  int error;
  uint8_t step;
};

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
  if (write(failures, &failure, sizeof failure) < 0) _exit(126);
  _exit(127);
}

/* A pipe and not the shared memory tells of a failure: an emulator may make a plain fork of this clone. */
static pid_t start_command(const struct exec_request *request, struct failure *failure) {
  static char stack[32768] __attribute__((aligned(16)));
  int fds[2];
  *failure = (struct failure){.step = STEP_PIPE};
  if (pipe2(fds, O_CLOEXEC) != 0) {
    failure->error = errno;
    return -1;
  }
  failures = fds[1];
  pid_t pid = clone(command_main, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, (void *)(uintptr_t)request);
  if (pid < 0) *failure = (struct failure){errno, STEP_FORK};
  close(fds[1]);
  while (pid > 0 && read(fds[0], failure, sizeof *failure) < 0 && errno == EINTR) continue;
  close(fds[0]);
  return pid;
}

static void tell(const struct report *report) {
  while (write(STATUS_FD, report, sizeof *report) < 0 && errno == EINTR) continue;
}

/* Reaps for the command and whatever it leaves behind; ends when nothing is left. */
static _Noreturn void shepherd_main(const struct exec_request *request) {
  struct failure failure;
  prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  pid_t pid = start_command(request, &failure);
  close(0);
  close(1);
  close(2);
  struct report report = {.kind = REPORT_STARTED, .pid = pid, .error = failure.error, .step = failure.step};
  if (failure.error != 0) report.kind = REPORT_FAILED;
  tell(&report);
  if (failure.error != 0) _exit(1);
  for (;;) {
    pid_t ended = wait4(-1, &report.status, 0, &report.usage);
    if (ended < 0 && errno != EINTR) _exit(0);
    if (ended != pid) continue;
    report.kind = REPORT_ENDED;
    tell(&report);
    /* A later process may get the same number. */
    pid = -1;
  }
}

static _Noreturn void run_tool(const struct exec_request *request, unsigned *unsaid) {
  struct report report = {.kind = REPORT_FAILED, .pid = getpid()};
  setsid();
  unblock_signals();
  setrlimit(RLIMIT_NOFILE, &the.files);
  report.error = become(request->uid, request->gid, &report.step);
  /* Changing the user may have made this copy of our memory readable again. */
  prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  if (report.error == 0) {
    report.step = STEP_CHDIR;
    report.error = chdir(request->cwd) == 0 ? 0 : errno;
  }
  if (report.error == 0) report.kind = REPORT_STARTED;
  tell(&report);
  close(STATUS_FD);
  if (report.error != 0) _exit(127);
  memset(the.token, 0, sizeof the.token);
  if (unsaid != NULL) tool_watch_shares(WATCH_FD, unsaid);
  int argc = 0;
  while (request->argv[argc] != NULL) argc++;
  _exit(tool_main(argc, request->argv));
}

struct ends {
  int input, output[2], status; /* the child's */
};

static void close_all(int *fds, int count) {
  for (int i = 0; i < count; i++)
    if (fds[i] >= 0) close(fds[i]);
}

static int make_pipe(int *reading, int *writing) {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) return errno;
  *reading = fds[0];
  *writing = fds[1];
  return 0;
}

static int open_null(void) {
  if (the.null >= 0) return fcntl(the.null, F_DUPFD_CLOEXEC, 3);
  int reading, writing;
  if (make_pipe(&reading, &writing) != 0) return -1;
  close(writing);
  return reading;
}

static int make_terminal(const struct exec_request *request, struct spawned *host, struct ends *child) {
  int master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (master < 0) master = open("/dev/pts/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (master < 0) return errno;
  host->output[0] = master;
  int unlock = 0;
  if (ioctl(master, TIOCSPTLCK, &unlock) != 0) return errno;
  int slave = -1;
#ifdef TIOCGPTPEER
  slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
#endif
  if (slave < 0) {
    unsigned number;
    char name[32] = "/dev/pts/";
    if (ioctl(master, TIOCGPTN, &number) != 0) return errno;
    decimal(name + strlen(name), number);
    slave = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (slave < 0) return errno;
  }
  child->input = slave;
  struct winsize size = {.ws_row = request->rows, .ws_col = request->cols};
  ioctl(master, TIOCSWINSZ, &size);
  /* So that the command may open its terminal by name; without the right to do it the descriptors still work. */
  if (fchown(slave, request->uid, (gid_t)-1) != 0) errno = 0;
  child->output[0] = fcntl(slave, F_DUPFD_CLOEXEC, 3);
  child->output[1] = fcntl(slave, F_DUPFD_CLOEXEC, 3);
  host->input = fcntl(master, F_DUPFD_CLOEXEC, 3);
  return child->output[0] < 0 || child->output[1] < 0 || host->input < 0 ? errno : 0;
}

static int make_pipes(const struct exec_request *request, struct spawned *host, struct ends *child) {
  int error = make_pipe(&host->output[0], &child->output[0]);
  if (error == 0) error = make_pipe(&host->output[1], &child->output[1]);
  if (error != 0) return error;
  if (request->flags & EXEC_STDIN) return make_pipe(&child->input, &host->input);
  child->input = open_null();
  return child->input < 0 ? errno : 0;
}

static int fork_child(const struct exec_request *request, const struct ends *child, const struct spawned *host, pid_t *pid) {
  int highest = the.highest_fd;
  const int fds[] = {child->input, child->output[0], child->output[1], child->status, host->input, host->output[0], host->output[1], host->status, host->watch.inotify};
  for (unsigned i = 0; i < sizeof fds / sizeof *fds; i++)
    if (fds[i] > highest) highest = fds[i];
  *pid = fork();
  if (*pid < 0) return errno;
  if (*pid > 0) return 0;
  dup2(child->input, 0);
  dup2(child->output[0], 1);
  dup2(child->output[1], 2);
  /* Out of the way of what is put where it may be. */
  int inotify = host->watch.inotify < 0 ? -1 : fcntl(host->watch.inotify, F_DUPFD_CLOEXEC, WATCH_FD + 1);
  if (child->status != STATUS_FD) dup3(child->status, STATUS_FD, O_CLOEXEC);
  bool watches = inotify >= 0 && dup3(inotify, WATCH_FD, O_CLOEXEC) >= 0;
  close_from(watches ? WATCH_FD + 1 : STATUS_FD + 1, inotify > highest ? inotify : highest);
  if (request->flags & EXEC_TOOL) run_tool(request, watches ? host->watch.unsaid : NULL);
  shepherd_main(request);
}

int spawn(const struct exec_request *request, struct spawned *host, uint8_t *step) {
  struct ends child = {-1, {-1, -1}, -1};
  *host = (struct spawned){.input = -1, .output = {-1, -1}, .status = -1, .watch = NO_WATCH};
  *step = STEP_PIPE;
  int error = make_pipe(&host->status, &child.status);
  if (error == 0 && request->flags & EXEC_PTY) {
    *step = STEP_PTY;
    error = make_terminal(request, host, &child);
  } else if (error == 0) {
    error = make_pipes(request, host, &child);
  }
  if (error == 0) {
    *step = STEP_FORK;
    if (request->flags & EXEC_TOOL && watch_is_sync(request->argv)) watch_open(&host->watch, request->uid);
    error = fork_child(request, &child, host, &host->pid);
  }
  close_all(&child.input, 1);
  close_all(child.output, 2);
  close_all(&child.status, 1);
  if (error != 0) watch_close(&host->watch);
  int *ours[] = {&host->input, &host->output[0], &host->output[1], &host->status};
  for (int i = 0; i < 4; i++) {
    if (*ours[i] < 0) continue;
    if (error == 0) fcntl(*ours[i], F_SETFL, fcntl(*ours[i], F_GETFL) | O_NONBLOCK);
    else close(*ours[i]);
  }
  return error;
}
