#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent.h"

struct process {
  pid_t pid, parent;
  bool dead, marked;
};

struct table {
  struct process *at;
  size_t count, capacity;
};

/* The name in a stat line is the process's to choose, brackets and all; what follows its last bracket is not. */
static bool parse_stat(char *line, struct process *process) {
  char *end = strrchr(line, ')');
  if (end == NULL || end[1] != ' ' || end[2] == 0 || end[3] != ' ') return false;
  process->dead = end[2] == 'Z' || end[2] == 'X';
  const char *text = end + 4;
  uint64_t parent;
  if (!number(&text, &parent)) return false;
  process->parent = (pid_t)parent;
  return true;
}

static bool read_process(int proc, const char *name, struct process *process) {
  const char *digits = name;
  uint64_t pid;
  if (!number(&digits, &pid)) return false;
  char path[32], line[512];
  size_t length = strlen(name);
  if (length > 12) return false;
  memcpy(path, name, length);
  memcpy(path + length, "/stat", 6);
  int fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  ssize_t got = read(fd, line, sizeof line - 1);
  close(fd);
  if (got <= 0) return false;
  line[got] = 0;
  *process = (struct process){.pid = (pid_t)pid};
  return parse_stat(line, process);
}

static bool table_add(struct table *t, struct process process) {
  if (t->count == t->capacity) {
    size_t capacity = t->capacity > 0 ? t->capacity * 2 : 128;
    struct process *grown = realloc(t->at, capacity * sizeof *grown);
    if (grown == NULL) return false;
    t->at = grown;
    t->capacity = capacity;
  }
  t->at[t->count++] = process;
  return true;
}

static int by_pid(const void *a, const void *b) {
  pid_t x = ((const struct process *)a)->pid, y = ((const struct process *)b)->pid;
  return (x > y) - (x < y);
}

static struct process *table_find(struct table *t, pid_t pid) {
  struct process key = {.pid = pid};
  return t->count == 0 ? NULL : bsearch(&key, t->at, t->count, sizeof key, by_pid);
}

/* A /proc of another pid namespace would name other processes by our numbers. */
static bool own_proc(void) {
  char name[16];
  ssize_t length = readlink("/proc/self", name, sizeof name - 1);
  if (length <= 0) return false;
  name[length] = 0;
  const char *text = name;
  uint64_t pid;
  return number(&text, &pid) && (pid_t)pid == getpid();
}

static bool table_read(struct table *t) {
  if (!own_proc()) return false;
  DIR *directory = opendir("/proc");
  if (directory == NULL) return false;
  for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
    struct process process;
    if (!read_process(dirfd(directory), entry->d_name, &process)) continue;
    if (!table_add(t, process)) break;
  }
  closedir(directory);
  if (t->count > 0) qsort(t->at, t->count, sizeof *t->at, by_pid);
  return table_find(t, getpid()) != NULL;
}

static bool known(pid_t pid) {
  if (spare_is(pid)) return true;
  for (const struct exec *e = the.execs; e != NULL; e = e->next)
    if (e->shepherd == pid) return true;
  return false;
}

/* Children mostly have higher numbers than their parents, so one round nearly always does. */
static void mark(struct table *t, pid_t root, bool strays) {
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t i = 0; i < t->count; i++) {
      struct process *p = &t->at[i];
      if (p->marked || p->pid == root || (strays && known(p->pid))) continue;
      struct process *parent = p->parent == root ? NULL : table_find(t, p->parent);
      if (p->parent != root && (parent == NULL || !parent->marked)) continue;
      p->marked = changed = true;
    }
  }
}

int signal_descendants(pid_t root, int signal, bool strays) {
  struct table t = {0};
  int living = -1;
  if (table_read(&t) && table_find(&t, root) != NULL) {
    living = 0;
    mark(&t, root, strays);
    for (size_t i = 0; i < t.count; i++) {
      if (!t.at[i].marked || t.at[i].dead) continue;
      living++;
      if (signal != 0) kill(t.at[i].pid, signal);
      /* One that is stopped could not heed it. */
      if (signal == SIGTERM || signal == SIGHUP) kill(t.at[i].pid, SIGCONT);
    }
  }
  free(t.at);
  return living;
}

int kill_descendants(pid_t root, bool strays) {
  /* Stopped first, so that none forks while others are killed. A few rounds; the caller comes back for the rest. */
  int before = -1;
  for (int round = 0; round < 4; round++) {
    int living = signal_descendants(root, SIGSTOP, strays);
    if (living <= 0) return living;
    if (living == before) break;
    before = living;
  }
  return signal_descendants(root, SIGKILL, strays);
}

int kill_unknown_children(void) {
  int found = 0;
  pid_t last = the.highest + 32768;
  for (pid_t pid = 2; pid < last; pid++) {
    if (pid == the.pid || known(pid)) continue;
    siginfo_t info = {0};
    /* Answers only for a child of ours. */
    if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid != 0) continue;
    kill(pid, SIGKILL);
    found++;
  }
  return found;
}
