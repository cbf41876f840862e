/* Starts a program that outlives its starter, in cgroups, with limits and as a user. Runs on the host. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent.h"

enum { MAX_OPTIONS = 16 };

struct limit {
  int resource;
  struct rlimit value;
};

struct launch {
  const char *cgroups[MAX_OPTIONS];
  int cgroup_count;
  struct limit limits[MAX_OPTIONS];
  int limit_count;
  bool user;
  uint32_t uid, gid;
  const char *pidfile, *log;
  unsigned handed; /* descriptors from 3 on that the program gets */
  const char *listen, *stage;
  const char *binds[MAX_OPTIONS];
  int bind_count;
  char **argv;
};

struct failure {
  int error;
  char what[60];
};

static bool parse_number(const char *text, uint64_t highest, uint64_t *value) {
  return number(&text, value) && *text == 0 && *value <= highest;
}

static bool parse_limit(char *text, struct limit *limit) {
  static const struct {
    const char *name;
    int resource;
  } names[] = {{"as", RLIMIT_AS},         {"core", RLIMIT_CORE},   {"cpu", RLIMIT_CPU},     {"data", RLIMIT_DATA},
               {"fsize", RLIMIT_FSIZE},   {"nofile", RLIMIT_NOFILE}, {"nproc", RLIMIT_NPROC}, {"stack", RLIMIT_STACK},
               {"memlock", RLIMIT_MEMLOCK}};
  char *equals = strchr(text, '=');
  uint64_t value;
  if (equals == NULL || !parse_number(equals + 1, UINT64_MAX, &value)) return false;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    if (strlen(names[i].name) != (size_t)(equals - text) || strncmp(names[i].name, text, (size_t)(equals - text)) != 0)
      continue;
    *limit = (struct limit){names[i].resource, {value, value}};
    return true;
  }
  return false;
}

static bool parse_option(struct launch *l, const char *name, char *value, bool seen[2]) {
  uint64_t number;
  bool uid = strcmp(name, "--uid") == 0;
  if (uid || strcmp(name, "--gid") == 0) {
    if (!parse_number(value, UINT32_MAX - 1, &number)) return false;
    *(uid ? &l->uid : &l->gid) = (uint32_t)number;
    seen[uid] = true;
  } else if (strcmp(name, "--cgroup-procs") == 0 && l->cgroup_count < MAX_OPTIONS) {
    l->cgroups[l->cgroup_count++] = value;
  } else if (strcmp(name, "--rlimit") == 0 && l->limit_count < MAX_OPTIONS) {
    return parse_limit(value, &l->limits[l->limit_count++]);
  } else if (strcmp(name, "--fds") == 0) {
    if (!parse_number(value, MAX_OPTIONS, &number)) return false;
    l->handed = (unsigned)number;
  } else if (strcmp(name, "--listen") == 0) {
    l->listen = value;
  } else if (strcmp(name, "--stage") == 0) {
    l->stage = value;
  } else if (strcmp(name, "--bind") == 0 && l->bind_count < MAX_OPTIONS) {
    l->binds[l->bind_count++] = value;
  } else if (strcmp(name, "--pidfile") == 0) {
    l->pidfile = value;
  } else if (strcmp(name, "--log") == 0) {
    l->log = value;
  } else {
    return false;
  }
  return true;
}

static bool parse(int argc, char **argv, struct launch *l) {
  bool seen[2] = {false, false};
  int i = 1;
  for (; i + 1 < argc && strcmp(argv[i], "--") != 0; i += 2)
    if (!parse_option(l, argv[i], argv[i + 1], seen)) return false;
  if (i + 1 >= argc || strcmp(argv[i], "--") != 0 || seen[0] != seen[1]) return false;
  if (l->bind_count > 0 && l->stage == NULL) return false;
  l->user = seen[0];
  l->argv = argv + i + 1;
  return true;
}

static int write_pid(const char *path, int flags, pid_t pid) {
  char text[24];
  size_t length = decimal(text, (unsigned long)pid);
  text[length++] = '\n';
  int fd = open(path, O_WRONLY | O_CLOEXEC | flags, 0600);
  if (fd < 0) return errno;
  int error = write(fd, text, length) == (ssize_t)length ? 0 : errno;
  close(fd);
  return error;
}

static int redirect(const char *log) {
  int null = open("/dev/null", O_RDWR);
  if (null < 0) return errno;
  int out = log == NULL ? null : open(log, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NOCTTY, 0600);
  if (out < 0) return errno;
  return dup2(null, 0) < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0 ? errno : 0;
}

static _Noreturn void fail(int pipe, const char *what, int error) {
  struct failure failure = {.error = error};
  size_t length = strlen(what);
  if (length >= sizeof failure.what) length = sizeof failure.what - 1;
  memcpy(failure.what, what, length);
  if (write(pipe, &failure, sizeof failure) < 0) _exit(2);
  _exit(1);
}

/* Puts every descriptor in its place: those handed on, the listener after them, then the pipe; closes the rest.
   Returns the pipe's new number. */
static int arrange(const struct launch *l, int pipe, int listener) {
  int place = 3 + (int)l->handed;
  int high = place + 2;
  if ((pipe = fcntl(pipe, F_DUPFD_CLOEXEC, high)) < 0) _exit(2);
  if (l->listen != NULL) {
    if ((listener = fcntl(listener, F_DUPFD_CLOEXEC, high)) < 0 || dup2(listener, place) < 0) fail(pipe, "--listen", errno);
    place++;
  }
  if (dup3(pipe, place, O_CLOEXEC) < 0) fail(pipe, "pipe", errno);
  close_from(place + 1, 65535);
  return place;
}

/* In a plain chroot the root is no mount, and neither this nor bubblewrap can work with that: it becomes one. /proc
   always is a mount; made private first, it keeps the new one from the mount namespace that we come from. */
static bool own_mounts(void) {
  if (unshare(CLONE_NEWNS) != 0) return false;
  if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0) return true;
  return errno == EINVAL && mount(NULL, "/proc", NULL, MS_PRIVATE, NULL) == 0 &&
         mount("/", "/proc", NULL, MS_BIND | MS_REC, NULL) == 0 && chdir("/proc") == 0 && chroot(".") == 0 &&
         mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}

/* In a mount namespace of its own, mounts each path as DIRECTORY/0, DIRECTORY/1 and so on: the program's user may be
   unable to reach them by the names they have. All are opened before DIRECTORY covers some of them. */
static void stage(const struct launch *l, int pipe) {
  int opened[MAX_OPTIONS];
  struct stat status[MAX_OPTIONS];
  if (!own_mounts()) fail(pipe, "--stage", errno);
  for (int i = 0; i < l->bind_count; i++) {
    opened[i] = open(l->binds[i], O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (opened[i] < 0 || fstat(opened[i], &status[i]) != 0) fail(pipe, l->binds[i], errno);
  }
  if (mount("aido", l->stage, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755") != 0 || chdir(l->stage) != 0)
    fail(pipe, l->stage, errno);
  for (int i = 0; i < l->bind_count; i++) {
    char name[24], source[48] = "/proc/self/fd/";
    name[decimal(name, (unsigned long)i)] = 0;
    source[14 + decimal(source + 14, (unsigned long)opened[i])] = 0;
    int made = S_ISDIR(status[i].st_mode) ? mkdir(name, 0755) : mknod(name, S_IFREG | 0644, 0);
    if (made != 0 || mount(source, name, NULL, MS_BIND, NULL) != 0) fail(pipe, l->binds[i], errno);
    close(opened[i]);
  }
  if (chdir("/") != 0) fail(pipe, "/", errno);
}

/* The program's own process. `pipe` closes at execve, which is how the starter knows. */
static _Noreturn void start(const struct launch *l, int pipe) {
  int error, listener = -1;
  if (l->listen != NULL && (listener = open_listener(l->listen)) < 0) fail(pipe, l->listen, errno);
  /* 0 is the writer itself. Version 1's `tasks` then needs no lock of all processes, which takes 10 ms to get. */
  for (int i = 0; i < l->cgroup_count; i++)
    if ((error = write_pid(l->cgroups[i], 0, 0)) != 0) fail(pipe, l->cgroups[i], error);
  if (l->pidfile != NULL && (error = write_pid(l->pidfile, O_CREAT | O_TRUNC | O_NOFOLLOW, getpid())) != 0)
    fail(pipe, l->pidfile, error);
  if ((error = redirect(l->log)) != 0) fail(pipe, l->log != NULL ? l->log : "/dev/null", error);
  pipe = arrange(l, pipe, listener);
  if (l->stage != NULL) stage(l, pipe);
  for (int i = 0; i < l->limit_count; i++)
    if (setrlimit(l->limits[i].resource, &l->limits[i].value) != 0) fail(pipe, "--rlimit", errno);
  if (l->user) {
    if (syscall(SYS_setgroups, 0, NULL) != 0) fail(pipe, "setgroups", errno);
    if (syscall(SYS_setresgid, l->gid, l->gid, l->gid) != 0) fail(pipe, "setgid", errno);
    if (syscall(SYS_setresuid, l->uid, l->uid, l->uid) != 0) fail(pipe, "setuid", errno);
  }
  umask(022);
  execvp(l->argv[0], l->argv);
  fail(pipe, l->argv[0], errno);
}

int launch_main(int argc, char **argv) {
  struct launch l = {0};
  if (!parse(argc, argv, &l)) return complain(1, "launch: bad option", EINVAL);
  int report[2], started[2];
  if (pipe2(report, O_CLOEXEC) != 0 || pipe2(started, O_CLOEXEC) != 0) return complain(1, "pipe", errno);
  pid_t middle = fork();
  if (middle < 0) return complain(1, "fork", errno);
  if (middle == 0) {
    setsid();
    pid_t pid = fork();
    if (pid < 0) fail(report[1], "fork", errno);
    if (pid == 0) start(&l, report[1]);
    _exit(write(started[1], &pid, sizeof pid) == (ssize_t)sizeof pid ? 0 : 1);
  }
  close(report[1]);
  close(started[1]);
  while (waitpid(middle, NULL, 0) < 0 && errno == EINTR) continue;
  struct failure failure;
  ssize_t got;
  while ((got = read(report[0], &failure, sizeof failure)) < 0 && errno == EINTR) continue;
  if (got == (ssize_t)sizeof failure) return complain(1, failure.what, failure.error);
  pid_t pid;
  if (read(started[0], &pid, sizeof pid) != (ssize_t)sizeof pid) return complain(1, "launch", ECHILD);
  char text[24];
  size_t length = decimal(text, (unsigned long)pid);
  text[length++] = '\n';
  return write(1, text, length) == (ssize_t)length ? 0 : 1;
}
