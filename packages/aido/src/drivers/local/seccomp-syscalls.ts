/** Numbers that differ between the two processor families are given for both; undefined means it has none. */
interface SyscallNumbers {
  readonly x64: number;
  readonly arm64: number | undefined;
}

/**
 * System calls refused inside a sandbox: each reaches a part of the kernel that ordinary programs do not need
 * and that has been a way out, or would change the machine if a capability were ever left over.
 */
export const REFUSED_SYSCALLS = {
  // mounts
  mount: { x64: 165, arm64: 40 },
  umount2: { x64: 166, arm64: 39 },
  pivot_root: { x64: 155, arm64: 41 },
  chroot: { x64: 161, arm64: 51 },
  open_tree: { x64: 428, arm64: 428 },
  move_mount: { x64: 429, arm64: 429 },
  fsopen: { x64: 430, arm64: 430 },
  fsconfig: { x64: 431, arm64: 431 },
  fsmount: { x64: 432, arm64: 432 },
  fspick: { x64: 433, arm64: 433 },
  mount_setattr: { x64: 442, arm64: 442 },
  name_to_handle_at: { x64: 303, arm64: 264 },
  open_by_handle_at: { x64: 304, arm64: 265 },
  fanotify_init: { x64: 300, arm64: 262 },
  quotactl: { x64: 179, arm64: 60 },
  quotactl_fd: { x64: 443, arm64: 443 },
  // namespaces
  unshare: { x64: 272, arm64: 97 },
  setns: { x64: 308, arm64: 268 },
  // code in the kernel
  init_module: { x64: 175, arm64: 105 },
  finit_module: { x64: 313, arm64: 273 },
  delete_module: { x64: 176, arm64: 106 },
  create_module: { x64: 174, arm64: undefined },
  query_module: { x64: 178, arm64: undefined },
  get_kernel_syms: { x64: 177, arm64: undefined },
  kexec_load: { x64: 246, arm64: 104 },
  kexec_file_load: { x64: 320, arm64: 294 },
  bpf: { x64: 321, arm64: 280 },
  perf_event_open: { x64: 298, arm64: 241 },
  userfaultfd: { x64: 323, arm64: 282 },
  io_uring_setup: { x64: 425, arm64: 425 },
  io_uring_enter: { x64: 426, arm64: 426 },
  io_uring_register: { x64: 427, arm64: 427 },
  modify_ldt: { x64: 154, arm64: undefined },
  // keys are not separated by namespaces
  add_key: { x64: 248, arm64: 217 },
  request_key: { x64: 249, arm64: 218 },
  keyctl: { x64: 250, arm64: 219 },
  // the machine itself
  reboot: { x64: 169, arm64: 142 },
  swapon: { x64: 167, arm64: 224 },
  swapoff: { x64: 168, arm64: 225 },
  acct: { x64: 163, arm64: 89 },
  syslog: { x64: 103, arm64: 116 },
  sethostname: { x64: 170, arm64: 161 },
  setdomainname: { x64: 171, arm64: 162 },
  settimeofday: { x64: 164, arm64: 170 },
  clock_settime: { x64: 227, arm64: 112 },
  vhangup: { x64: 153, arm64: 58 },
  iopl: { x64: 172, arm64: undefined },
  ioperm: { x64: 173, arm64: undefined },
  lookup_dcookie: { x64: 212, arm64: 18 },
  nfsservctl: { x64: 180, arm64: 42 },
  uselib: { x64: 134, arm64: undefined },
  _sysctl: { x64: 156, arm64: undefined },
} as const satisfies Record<string, SyscallNumbers>;

/** System calls that are looked at more closely. */
export const EXAMINED_SYSCALLS = {
  clone: { x64: 56, arm64: 220 },
  clone3: { x64: 435, arm64: 435 },
  ioctl: { x64: 16, arm64: 29 },
  socket: { x64: 41, arm64: 198 },
  socketpair: { x64: 53, arm64: 199 },
} as const satisfies Record<string, { x64: number; arm64: number }>;
