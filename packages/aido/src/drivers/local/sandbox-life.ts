import { rmSync } from "node:fs";
import { AidoError } from "@aido/sdk/protocol";
import type { Cgroup } from "./cgroup.ts";
import { endSandboxProcesses, until } from "./end-processes.ts";
import { etcFiles, nameFiles, sharedEtc, toHostname, writeEtc } from "./etc-files.ts";
import { launchSandbox } from "./launch-sandbox.ts";
import type { Machine } from "./machine.ts";
import { mostOpenFiles } from "./most-open-files.ts";
import { bootId } from "./process-table.ts";
import { livingSupervisor, sandboxEnd } from "./sandbox-container.ts";
import type { SandboxPaths } from "./sandbox-paths.ts";
import { type SandboxStart, type SandboxState, writeState } from "./sandbox-state.ts";

/** From the end of a sandbox's first process until bubblewrap has noted its exit code and left the control group. */
const SETTLE_LIMIT_MS = 5_000;

export interface SandboxPlace {
  state: SandboxState;
  paths: SandboxPaths;
  cgroup: Cgroup | undefined;
}

export interface SandboxStartOptions extends SandboxPlace {
  machine: Machine;
  agentPath: string;
  signal: AbortSignal | undefined;
}

/** Starts a sandbox that does not run. Whoever calls holds its lock. */
export async function startSandbox(options: SandboxStartOptions): Promise<void> {
  const { state, paths, cgroup, machine, agentPath, signal } = options;
  const userNamespace = machine.userNamespaces;
  checkUser(state, userNamespace);
  await cleanCgroup(cgroup);
  const cgroupProcs = cgroup?.create(state.limits) ?? [];
  rmSync(paths.status, { force: true });
  // Written before the launch: whoever finds it without a supervisor looks for one that was not recorded.
  const start = {
    startedAt: new Date().toISOString(),
    bootId: bootId(),
    userNamespace,
    supervisor: undefined,
  };
  const starting = { ...state, start, end: undefined };
  writeState(paths.directory, starting);
  const countsProcesses = machine.cgroups?.parents.pids !== undefined;
  const launched = await launchSandbox({
    ...{ bwrap: machine.bwrap, processor: machine.processor, agentPath, paths, cgroupProcs, signal },
    layout: {
      ...{
        state,
        userNamespace,
        agentPath,
        etc: etcOf(state, paths, userNamespace),
        names: Object.keys(nameFiles("")).map((name) => paths.name(name)),
        work: paths.work,
        memoryCgroup: cgroup?.memoryDirectory,
      },
      hostname: toHostname(state.name),
      temporary: [
        ...(machine.canSizeTemporary ? ["--size", `${state.limits.memoryBytes}`] : []),
        ...(machine.canSetPermissions ? ["--perms", "1777"] : []),
      ],
      prlimit: userNamespace && !countsProcesses ? machine.prlimit : undefined,
    },
    rlimits: {
      ...{ core: 0, nofile: Math.min(state.limits.openFiles, mostOpenFiles()) },
      // Counts for the sandbox's user, which no other process of the host has; root is exempt.
      ...(userNamespace || countsProcesses ? {} : { nproc: state.limits.pids }),
      // For each process, where nothing counts the memory of all: better than none.
      ...(machine.cgroups?.parents.memory === undefined ? { data: state.limits.memoryBytes } : {}),
    },
  });
  recordLaunch(starting, paths, launched);
}

/** Without a user namespace the user is the sandbox's alone, and so is what names it. */
function etcOf({ workdir, user }: SandboxState, paths: SandboxPaths, userNamespace: boolean): string {
  const settings = { home: workdir, ...user };
  if (userNamespace) return sharedEtc(paths.root, settings);
  writeEtc(paths.etc, etcFiles(settings));
  return paths.etc;
}

/** The user of a sandbox is a number of its user namespace; without one, that number is somebody else's. */
function checkUser({ sandboxId, user, hostUid }: SandboxState, userNamespace: boolean): void {
  if (userNamespace || (user.uid === hostUid && user.gid === hostUid)) return;
  throw new AidoError(
    "CONTAINER_START_FAILED",
    `Sandbox ${sandboxId} was made with a user namespace, and this machine refuses them now`,
    { hint: "Allow them again (`aido doctor` says how), or make a new sandbox.", details: { id: sandboxId } },
  );
}

export function recordLaunch(
  state: SandboxState,
  paths: SandboxPaths,
  launched: Pick<SandboxStart, "supervisor" | "monitor">,
): void {
  if (state.start === undefined || state.start.supervisor !== undefined) return;
  writeState(paths.directory, { ...state, start: { ...state.start, ...launched } });
}

/** Ends what runs and records how it ended. Nothing to do for a sandbox that never ran or is known to have ended. */
export async function endSandbox(place: SandboxPlace, graceMs: number, signal?: AbortSignal): Promise<void> {
  const { state, paths, cgroup } = place;
  if (state.start === undefined || state.end !== undefined) return;
  const supervisor = livingSupervisor(state, paths);
  if (supervisor !== undefined) {
    await endSandboxProcesses(supervisor, graceMs, signal);
    await until(() => sandboxEnd(state, paths, undefined).exitCode !== undefined, SETTLE_LIMIT_MS);
  }
  writeState(paths.directory, { ...state, end: sandboxEnd(state, paths, cgroup) });
  await cleanCgroup(cgroup);
  rmSync(paths.socket, { force: true });
}

/** Whatever is left in the control groups belongs to a start that was cut short before it was recorded. */
export async function cleanCgroup(cgroup: Cgroup | undefined): Promise<void> {
  if (cgroup === undefined) return;
  await until(() => {
    cgroup.kill();
    return cgroup.remove();
  }, SETTLE_LIMIT_MS);
}
