import { spawn } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { closeSync, existsSync, openSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { AidoError } from "@aido/sdk/protocol";
import { type BwrapLayout, bwrapArguments, ownSources } from "./bwrap-arguments.ts";
import { openBwrapStatus, readBwrapStatus } from "./bwrap-status.ts";
import { identify, type ProcessIdentity, readStat } from "./process-table.ts";
import type { SandboxPaths } from "./sandbox-paths.ts";
import { type Processor, seccompFilter } from "./seccomp-filter.ts";

const START_LIMIT_MS = 10_000;
const POLL_MS = 1;
const FIRST_FD = 3;
/** Covered, in the launcher's own mount namespace, by the paths that bubblewrap's user could not reach otherwise. */
export const STAGE = "/tmp";

export interface Launch {
  bwrap: string;
  agentPath: string;
  paths: SandboxPaths;
  layout: Omit<BwrapLayout, "seccompFd" | "statusFd" | "listenFd" | "reach">;
  /** Files that a process joins its control groups by. */
  cgroupProcs: readonly string[];
  rlimits: Readonly<Record<string, number>>;
  processor: Processor;
  signal: AbortSignal | undefined;
}

export interface Launched {
  supervisor: ProcessIdentity;
  monitor: ProcessIdentity | undefined;
}

/** Starts the sandbox as a process of its own, not a child of ours, and waits until its supervisor runs. */
export async function launchSandbox(launch: Launch): Promise<Launched> {
  const { paths, layout } = launch;
  const hostUid = layout.state.hostUid;
  const seccompFd = FIRST_FD;
  const statusFd = FIRST_FD + 1;
  const listenFd = FIRST_FD + 2;
  const draft: BwrapLayout = { ...layout, seccompFd, statusFd, listenFd, reach: (path) => path };
  const staged = hostUid === undefined ? [] : ownSources(draft);
  const reach = (path: string) => (staged.includes(path) ? join(STAGE, `${staged.indexOf(path)}`) : path);

  const seccomp = sharedFilter(paths.root, launch.processor);
  const status = `${paths.status}.new`;
  const descriptors = [openSync(seccomp, "r"), openBwrapStatus(status)];
  try {
    renameSync(status, paths.status);
    const command = [
      ...["launch", "--log", paths.log, "--fds", `${descriptors.length}`, "--listen", paths.socket],
      ...launch.cgroupProcs.flatMap((file) => ["--cgroup-procs", file]),
      ...Object.entries(launch.rlimits).flatMap(([name, value]) => ["--rlimit", `${name}=${value}`]),
      ...launchUser(hostUid, layout.userNamespace),
      ...staged.flatMap((path) => ["--bind", path]),
      ...["--", launch.bwrap, ...bwrapArguments({ ...draft, reach })],
    ];
    const monitor = await runLauncher(launch.agentPath, command, descriptors);
    const supervisor = await supervisorStarted(monitor, paths, launch.signal);
    return { supervisor, monitor: identify(monitor) };
  } finally {
    for (const descriptor of descriptors) closeSync(descriptor);
  }
}

/** The same for every sandbox: written once, under a name that tells its content. */
function sharedFilter(root: string, processor: Processor): string {
  const filter = seccompFilter(processor);
  const path = join(root, `.seccomp-${createHash("sha256").update(filter).digest("hex").slice(0, 16)}`);
  if (existsSync(path)) return path;
  const draft = `${path}.${randomBytes(6).toString("hex")}`;
  writeFileSync(draft, filter, { mode: 0o600 });
  renameSync(draft, path);
  return path;
}

/** Whom bubblewrap runs as, and that it gets mounts of its own to find its sources in. */
export function launchUser(hostUid: number | undefined, userNamespace: boolean): string[] {
  if (hostUid === undefined) return [];
  const user = userNamespace ? ["--uid", `${hostUid}`, "--gid", `${hostUid}`] : [];
  return [...user, "--stage", STAGE];
}

/**
 * Resolves to bubblewrap's own process. Not abortable: it returns at once, and a launcher killed half way could
 * leave a sandbox behind.
 */
export function runLauncher(
  agentPath: string,
  command: readonly string[],
  descriptors: readonly number[],
): Promise<number> {
  return new Promise((resolve, reject) => {
    const launcher = spawn(agentPath, command, {
      cwd: "/",
      env: {},
      stdio: ["ignore", "pipe", "pipe", ...descriptors],
      timeout: START_LIMIT_MS,
      killSignal: "SIGKILL",
    });
    let answer = "";
    launcher.stdout?.setEncoding("utf8").on("data", (text: string) => {
      answer += text;
    });
    let complaint = "";
    launcher.stderr?.setEncoding("utf8").on("data", (text: string) => {
      complaint += text;
    });
    launcher.once("error", reject);
    launcher.once("close", (code, signal) => {
      if (code === 0) resolve(Number(answer));
      else reject(startFailed(complaint.trim() || `the launcher ended with ${signal ?? code}`));
    });
  });
}

/** bubblewrap tells its child's number at once; the child has become the supervisor when its name says so. */
async function supervisorStarted(
  monitor: number,
  paths: SandboxPaths,
  signal: AbortSignal | undefined,
): Promise<ProcessIdentity> {
  const giveUpAt = Date.now() + START_LIMIT_MS;
  for (;;) {
    // Looked at before the file, so that what it wrote last is not missed.
    const isMonitored = !["Z", "X", undefined].includes(readStat(monitor)?.state);
    const status = readBwrapStatus(paths.status);
    const supervisor = status?.childPid === undefined ? undefined : identify(status.childPid);
    if (supervisor !== undefined && nameOf(supervisor.pid) === "aido-agent") return supervisor;
    if (!isMonitored || Date.now() > giveUpAt) throw startFailed(lastWords(paths.log));
    await sleep(POLL_MS, undefined, signal === undefined ? {} : { signal });
  }
}

function nameOf(pid: number): string | undefined {
  try {
    return readFileSync(`/proc/${pid}/comm`, "utf8").trim();
  } catch {
    return undefined;
  }
}

function lastWords(log: string): string {
  const text = readFileSync(log, "utf8").trim();
  return text.slice(-500) || "it ended without a word";
}

function startFailed(reason: string): AidoError {
  return new AidoError("CONTAINER_START_FAILED", `The sandbox could not be started: ${reason}`, {
    hint: "`aido doctor` checks what this machine can do.",
  });
}
