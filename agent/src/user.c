#include <errno.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent.h"

/* The kernel's capset, version 3; musl comes without the kernel's headers. */
struct capability_header {
  uint32_t version;
  int pid;
};
struct capability_data {
  uint32_t effective, permitted, inheritable;
};
enum { CAPABILITY_VERSION = 0x20080522 };

/* Raw calls: the C library's own would change every thread, and this also runs in a child that shares our memory. */
static int drop_capabilities(void) {
  prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  struct capability_header header = {.version = CAPABILITY_VERSION};
  struct capability_data none[2] = {{0}};
  return syscall(SYS_capset, &header, none) == 0 ? 0 : errno;
}

/* Once: the set only ever shrinks, and each command would ask 64 times. */
void read_bounding_set(void) {
  for (int capability = 0; capability < 64; capability++)
    if (prctl(PR_CAPBSET_READ, capability, 0, 0, 0) > 0) the.bounding |= UINT64_C(1) << capability;
}

int drop_bounding_set(void) {
  for (int capability = 0; capability < 64; capability++) {
    if (!(the.bounding >> capability & 1)) continue;
    /* Without CAP_SETPCAP it stays, and means nothing: no_new_privs and a user without capabilities follow. */
    if (prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0 && errno != EPERM) return errno;
  }
  return 0;
}

/* A sandbox that was asked to have no walls: root in it is what its engine made of root. */
static bool keeps_capabilities(uint32_t uid) { return the.privileged && uid == 0; }

int become(uint32_t uid, uint32_t gid, uint8_t *step) {
  bool change = uid != geteuid() || gid != getegid() || uid != getuid() || gid != getgid();
  *step = STEP_SETUID;
  if (the.only_user != 0 && (uid != the.only_user || gid != the.only_user)) return EPERM;
  *step = STEP_CAPABILITIES;
  int error = keeps_capabilities(uid) ? 0 : drop_bounding_set();
  if (error != 0) return error;
  *step = STEP_SETGROUPS;
  if (syscall(SYS_setgroups, 0, NULL) != 0 && change) return errno;
  *step = STEP_SETGID;
  if (change && syscall(SYS_setresgid, gid, gid, gid) != 0) return errno;
  *step = STEP_SETUID;
  if (change && syscall(SYS_setresuid, uid, uid, uid) != 0) return errno;
  if (keeps_capabilities(uid)) return 0;
  *step = STEP_CAPABILITIES;
  error = drop_capabilities();
  if (error != 0) return error;
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 ? 0 : errno;
}
