import type { ExecInfo, FileInfo, SandboxInfo, SandboxStats } from "@aido/sdk/protocol";
import type { ExecReply, FileReply, SandboxReply } from "@aido/sdk/schemas";
import { publicLabels } from "./ownership.ts";

const iso = (date: Date | undefined): string | null => date?.toISOString() ?? null;
const STATUS = { pending: "created", running: "running", stopped: "stopped", deleted: "deleted" } as const;

export function sandboxToWire(sandbox: SandboxInfo): SandboxReply {
  return {
    containerId: sandbox.id,
    status: STATUS[sandbox.state],
    createdAt: sandbox.createdAt.toISOString(),
    expiresAt: iso(sandbox.expiresAt),
    id: sandbox.id,
    name: sandbox.name ?? null,
    profile: sandbox.profile,
    image: sandbox.image,
    ...(sandbox.programs === undefined ? {} : { programs: sandbox.programs }),
    driver: sandbox.driver,
    isolation: sandbox.isolation,
    state: sandbox.state,
    endReason: sandbox.endReason ?? null,
    engineId: sandbox.containerId ?? null,
    workdir: sandbox.workdir,
    network: sandbox.network,
    limits: sandbox.limits,
    labels: publicLabels(sandbox.labels),
    startedAt: iso(sandbox.startedAt),
    stoppedAt: iso(sandbox.stoppedAt),
    idleTimeoutMs: sandbox.idleTimeoutMs,
    autoResume: sandbox.autoResume,
    lastActivityAt: sandbox.lastActivityAt.toISOString(),
    phase: sandbox.phase ?? null,
    sidecarUrl: sandbox.sidecarUrl ?? null,
    tier: sandbox.tier ?? null,
    tierSince: iso(sandbox.tierSince),
    workspace: sandbox.workspace ?? null,
  };
}

/** The wire has usage as text: processor share and memory with a unit. */
export function usageToWire(
  stats: SandboxStats,
  startedAt: Date | undefined,
): { cpuUsage: string; memoryUsage: string } {
  const aliveMs = startedAt === undefined ? 0 : Math.max(1, stats.at.getTime() - startedAt.getTime());
  const share = aliveMs === 0 ? 0 : stats.cpuMs / aliveMs;
  return { cpuUsage: share.toFixed(2), memoryUsage: `${Math.round(stats.memoryBytes / (1024 * 1024))}m` };
}

export function statsToWire(stats: SandboxStats) {
  return { ...stats, at: stats.at.toISOString() };
}

export type ExecState = Omit<ExecReply, "status" | "stdout" | "stderr" | "stdoutOffset" | "stderrOffset">;

export function execToWire(exec: ExecInfo): ExecState {
  return {
    id: exec.id,
    containerId: exec.sandboxId,
    command: [...exec.argv],
    state: exec.status,
    exitCode: exec.exitCode ?? null,
    signal: exec.signal ?? null,
    ...(exec.startError === undefined ? {} : { startError: { ...exec.startError } }),
    startedAt: exec.startedAt.toISOString(),
    endedAt: iso(exec.endedAt),
    duration: exec.durationMs ?? null,
    stdoutBytes: exec.stdoutBytes,
    stderrBytes: exec.stderrBytes,
  };
}

/** A command that fails is an answer, not an error of the server. */
export function execOutcome(exec: ExecInfo): Pick<ExecReply, "status" | "error" | "errorCode"> {
  if (exec.status === "running") return { status: "running" };
  if (exec.status === "exited" && exec.exitCode === 0) return { status: "success" };
  const errorCode = FAILURE_CODES[exec.status];
  return { status: "error", error: failureText(exec), ...(errorCode && { errorCode }) };
}

const FAILURE_CODES: Partial<Record<ExecInfo["status"], ExecReply["errorCode"]>> = {
  timeout: "EXECUTION_TIMEOUT",
  out_of_memory: "OUT_OF_MEMORY",
};

function failureText(exec: ExecInfo): string {
  switch (exec.status) {
    case "timeout":
      return "The command was killed when its time was over";
    case "out_of_memory":
      return "The command ran out of memory";
    case "output_limit":
      return "The command was killed because it wrote more than its output limit";
    case "lost":
      return "The sandbox ended before the command did, the server was killed before it had started, or what it wrote could not be kept";
    case "killed":
      return `The command was killed${exec.signal === undefined ? "" : ` by ${exec.signal}`}`;
    default:
      return exec.startError?.message ?? `Process exited with code ${exec.exitCode ?? "unknown"}`;
  }
}

export function fileToWire(file: FileInfo): FileReply {
  return {
    path: file.path,
    type: file.type,
    size: file.size,
    mode: file.mode,
    uid: file.uid,
    gid: file.gid,
    modifiedAt: file.modifiedAt.toISOString(),
    target: file.target ?? null,
  };
}
