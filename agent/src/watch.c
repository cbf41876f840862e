#include "watch.h"

#include <string.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The kernel counts instances by user, and root's few are the host's too: it is opened as the tool's user. */
static int open_inotify(uint32_t uid) {
  if (geteuid() == uid) return inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  if (syscall(SYS_setresuid, -1, uid, -1) != 0) return -1;
  int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  if (syscall(SYS_setresuid, -1, 0, -1) != 0) _exit(125);
  return fd;
}

bool watch_is_sync(char *const *argv) {
  if (argv[0] == NULL || strcmp(argv[0], "watch") != 0) return false;
  return argv[1] != NULL && argv[2] != NULL && argv[3] != NULL && strcmp(argv[3], "sync") == 0;
}

void watch_open(struct watch *watch, uint32_t uid) {
  *watch = NO_WATCH;
  void *page = mmap(NULL, sizeof *watch->unsaid, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return;
  watch->unsaid = page;
  *watch->unsaid = 1;
  watch->inotify = open_inotify(uid);
  if (watch->inotify < 0) watch_close(watch);
}

void watch_close(struct watch *watch) {
  if (watch->inotify >= 0) close(watch->inotify);
  if (watch->unsaid != NULL) munmap(watch->unsaid, sizeof *watch->unsaid);
  *watch = NO_WATCH;
}

bool watch_is_quiet(const struct watch *watch) {
  int waiting = 1;
  /* In this order: the tool marks what it takes out of the queue before it does so. */
  if (ioctl(watch->inotify, FIONREAD, &waiting) != 0 || waiting != 0) return false;
  return __atomic_load_n(watch->unsaid, __ATOMIC_SEQ_CST) == 0;
}
