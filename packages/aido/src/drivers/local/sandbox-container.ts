import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import type { Container } from "../../core/driver/driver.ts";
import { readBwrapStatus } from "./bwrap-status.ts";
import type { Cgroup } from "./cgroup.ts";
import { bootId, identify, isAlive, type ProcessIdentity } from "./process-table.ts";
import type { SandboxPaths } from "./sandbox-paths.ts";
import type { SandboxEnd, SandboxState } from "./sandbox-state.ts";

const KILLED = 128 + 9;

/** The sandbox's first process if it lives. */
export function livingSupervisor(state: SandboxState, paths: SandboxPaths): ProcessIdentity | undefined {
  if (state.start === undefined || state.end !== undefined) return undefined;
  const supervisor = state.start.supervisor ?? unrecorded(state, paths);
  return supervisor !== undefined && isAlive(supervisor) ? supervisor : undefined;
}

/**
 * aido was killed after bubblewrap had started and before it could note whom. bubblewrap's own note has the process
 * number; it is believed only if that process is the first of a namespace below ours and has the sandbox's user or,
 * where it would have root, if its parent still holds that very note.
 */
function unrecorded(state: SandboxState, paths: SandboxPaths): ProcessIdentity | undefined {
  const childPid = readBwrapStatus(paths.status)?.childPid;
  if (childPid === undefined || state.start?.bootId !== bootId()) return undefined;
  try {
    const status = readFileSync(`/proc/${childPid}/status`, "utf8");
    // Not by `^`, which \r in the process's own name would satisfy.
    const isFirst = /\nNSpid:\t\d+(\t\d+)*\t1\n/.test(status);
    const uid = Number(/\nUid:\t(\d+)/.exec(status)?.[1]);
    const isOurs = state.start.userNamespace
      ? uid === (state.hostUid ?? process.getuid?.())
      : holds(Number(/\nPPid:\t(\d+)/.exec(status)?.[1]), paths.status);
    return isFirst && isOurs ? identify(childPid) : undefined;
  } catch {
    return undefined; // it has ended
  }
}

function holds(pid: number, path: string): boolean {
  const directory = `/proc/${pid}/fd`;
  return readdirSync(directory).some((name) => readlinkSync(join(directory, name)) === path);
}

/** How a sandbox that was started and does not live came to its end. */
export function sandboxEnd(state: SandboxState, paths: SandboxPaths, cgroup: Cgroup | undefined): SandboxEnd {
  if (state.end !== undefined) return state.end;
  const status = readBwrapStatus(paths.status);
  return {
    exitCode: status?.exitCode,
    outOfMemory: status?.exitCode === KILLED && (cgroup?.oomKills() ?? 0) > 0,
    finishedAt: (status?.writtenAt ?? new Date()).toISOString(),
  };
}

/** Its first process has ended, and how is not noted yet. */
function isEnding({ start, end }: SandboxState, paths: SandboxPaths): boolean {
  if (end !== undefined || start?.monitor === undefined || !isAlive(start.monitor)) return false;
  return readBwrapStatus(paths.status)?.exitCode === undefined;
}

export function toContainer(state: SandboxState, paths: SandboxPaths, cgroup: Cgroup | undefined): Container {
  const common = {
    sandboxId: state.sandboxId,
    containerId: `local-${state.sandboxId}`,
    image: state.image,
    user: state.user,
    startedAt: state.start === undefined ? undefined : new Date(state.start.startedAt),
  };
  const still = { ...common, exitCode: undefined, outOfMemory: false, finishedAt: undefined };
  if (state.start === undefined) return { ...still, state: "created" };
  if (livingSupervisor(state, paths) !== undefined || isEnding(state, paths))
    return { ...still, state: "running" };
  const { exitCode, outOfMemory, finishedAt } = sandboxEnd(state, paths, cgroup);
  return { ...common, state: "exited", exitCode, outOfMemory, finishedAt: new Date(finishedAt) };
}
