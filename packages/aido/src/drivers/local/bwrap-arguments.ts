import { existsSync, lstatSync, readlinkSync, realpathSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { Mount } from "../../core/driver/driver.ts";
import { ETC_DIRECTORIES } from "./etc-files.ts";
import type { SandboxState } from "./sandbox-state.ts";

const AGENT_INSIDE = "/.aido/aido-agent";
const CGROUP_INSIDE = "/.aido/cgroup";
/** What a supervisor that is root needs to start commands as the sandbox's user and to end them. */
const SUPERVISOR_CAPABILITIES = ["CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP", "CAP_KILL", "CAP_CHOWN"];
const ROOT_DIRECTORIES = ["bin", "sbin", "lib", "lib32", "lib64", "libx32"];

export interface BwrapLayout {
  state: SandboxState;
  /** False where the kernel refuses user namespaces: then bubblewrap and the supervisor are root. */
  userNamespace: boolean;
  hostname: string;
  agentPath: string;
  etc: string;
  /** Files to be mounted over those of the same name in /etc. */
  names: readonly string[];
  /** Mounted at the workdir unless one of the sandbox's mounts is. */
  work: string;
  memoryCgroup: string | undefined;
  /** Options of each memory-backed directory. */
  temporary: readonly string[];
  /** A program of the host that bounds the number of processes, where no control group does. */
  prlimit: string | undefined;
  seccompFd: number;
  statusFd: number;
  /** The supervisor's listening socket. It is handed over open, so that its directory need not be visible inside. */
  listenFd: number;
  /** Where bubblewrap's user finds a path of the host. */
  reach: (path: string) => string;
}

/** Everything a sandbox sees of the host is named here; nothing else is visible. */
export function bwrapArguments(layout: BwrapLayout): string[] {
  const { state } = layout;
  return [
    ...(layout.userNamespace ? userNamespace(state.user) : []),
    ...["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"],
    ...(state.network === "host" ? [] : ["--unshare-net"]),
    ...["--hostname", layout.hostname, "--as-pid-1", ...capabilities(layout.userNamespace)],
    ...["--seccomp", `${layout.seccompFd}`, "--json-status-fd", `${layout.statusFd}`],
    ...hostPrograms(),
    ...etc(layout),
    ...["--proc", "/proc", "--dev", "/dev"],
    // Root's files otherwise, whatever namespace they are seen from.
    ...(layout.userNamespace ? [] : ["--ro-bind", "/proc/sys", "/proc/sys"]),
    ...[...layout.temporary, "--tmpfs", "/dev/shm"],
    ...[...layout.temporary, "--tmpfs", "/tmp"],
    ...[...layout.temporary, "--tmpfs", "/var/tmp"],
    ...[...layout.temporary, "--tmpfs", "/run"],
    ...mounts(layout),
    ...["--ro-bind", layout.reach(layout.agentPath), AGENT_INSIDE],
    ...(layout.memoryCgroup === undefined ? [] : ["--ro-bind", layout.memoryCgroup, CGROUP_INSIDE]),
    ...["--remount-ro", "/", "--chdir", "/", "--"],
    // Inside, where only the sandbox's own processes count.
    ...(layout.prlimit === undefined ? [] : [layout.prlimit, `--nproc=${state.limits.pids}`, "--"]),
    ...[AGENT_INSIDE, "supervise", "--listen-fd", `${layout.listenFd}`],
    ...(layout.memoryCgroup === undefined ? [] : ["--cgroup", CGROUP_INSIDE]),
    ...(layout.userNamespace ? [] : ["--only-user", `${state.user.uid}`]),
  ];
}

/** One user, which no other of the host can be reached from. */
export function userNamespace({ uid, gid }: { uid: number; gid: number }): string[] {
  return ["--unshare-user", "--uid", `${uid}`, "--gid", `${gid}`];
}

/** In a user namespace the supervisor is the sandbox's user already, and needs none. */
export function capabilities(hasUserNamespace: boolean): string[] {
  const kept = hasUserNamespace ? [] : SUPERVISOR_CAPABILITIES;
  return ["--cap-drop", "ALL", ...kept.flatMap((name) => ["--cap-add", name])];
}

/** Every path of aido's own that is mounted; the user that bubblewrap runs as may be unable to reach them. */
export function ownSources(layout: BwrapLayout): string[] {
  const { agentPath, etc, names } = layout;
  return [agentPath, etc, ...names, ...workspaceMounts(layout).map((mount) => mount.source)];
}

/** /usr and what the distribution keeps beside it or links into it. */
export function hostPrograms(): string[] {
  const rest = ROOT_DIRECTORIES.flatMap((name) => {
    const path = join("/", name);
    const found = lstatSync(path, { throwIfNoEntry: false });
    if (found === undefined) return [];
    return found.isSymbolicLink() ? ["--symlink", readlinkSync(path), path] : ["--ro-bind", path, path];
  });
  return ["--ro-bind", "/usr", "/usr", ...rest];
}

function etc(layout: BwrapLayout): string[] {
  const shared = ["/etc/ld.so.cache", ...ETC_DIRECTORIES.map((name) => join("/etc", name))];
  if (layout.state.network === "host") shared.push("/etc/resolv.conf");
  return [
    "--ro-bind",
    layout.reach(layout.etc),
    "/etc",
    ...layout.names.flatMap((path) => ["--ro-bind", layout.reach(path), join("/etc", basename(path))]),
    ...shared.filter((path) => existsSync(path)).flatMap((path) => ["--ro-bind", realpathSync(path), path]),
  ];
}

function mounts(layout: BwrapLayout): string[] {
  const all = workspaceMounts(layout);
  return [
    ...above(all.map(({ target }) => target)).flatMap((path) => ["--dir", path]),
    ...all.flatMap((mount) => [
      mount.readOnly ? "--ro-bind" : "--bind",
      layout.reach(mount.source),
      mount.target,
    ]),
  ];
}

/** Directories that lead to these and are in none of them: made by bubblewrap unasked, nobody but their owner could enter. */
function above(targets: readonly string[]): string[] {
  const found = new Set<string>();
  const isInside = (path: string) => targets.some((target) => `${path}/`.startsWith(`${target}/`));
  for (const target of targets) {
    for (let path = dirname(target); path !== "/" && path !== "."; path = dirname(path)) {
      if (!isInside(path)) found.add(path);
    }
  }
  return [...found].sort();
}

function workspaceMounts({ state, work }: BwrapLayout): Mount[] {
  const isMounted = state.mounts.some((mount) => mount.target === state.workdir);
  return [...(isMounted ? [] : [{ source: work, target: state.workdir, readOnly: false }]), ...state.mounts];
}
