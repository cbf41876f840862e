import type { ExecInfo, FileInfo, SandboxInfo } from "../protocol/index.ts";
import type { ExecReply, FileReply, SandboxReply } from "../schemas/index.ts";

const date = (text: string | null): Date | undefined => (text === null ? undefined : new Date(text));

export function toSandboxInfo(reply: SandboxReply): SandboxInfo {
  return {
    id: reply.id,
    name: reply.name ?? undefined,
    profile: reply.profile,
    image: reply.image,
    ...(reply.programs === undefined ? {} : { programs: reply.programs }),
    driver: reply.driver,
    isolation: reply.isolation,
    state: reply.state,
    endReason: reply.endReason ?? undefined,
    containerId: reply.engineId ?? undefined,
    workdir: reply.workdir,
    network: reply.network,
    limits: reply.limits,
    labels: reply.labels,
    createdAt: new Date(reply.createdAt),
    startedAt: date(reply.startedAt),
    stoppedAt: date(reply.stoppedAt),
    expiresAt: date(reply.expiresAt),
    idleTimeoutMs: reply.idleTimeoutMs,
    autoResume: reply.autoResume,
    lastActivityAt: new Date(reply.lastActivityAt),
    ...(reply.phase === null ? {} : { phase: reply.phase }),
    sidecarUrl: reply.sidecarUrl ?? undefined,
    tier: reply.tier ?? undefined,
    tierSince: reply.tierSince === null ? undefined : new Date(reply.tierSince),
    workspace: reply.workspace ?? undefined,
  };
}

export type ExecStateReply = Omit<
  ExecReply,
  "status" | "stdout" | "stderr" | "stdoutOffset" | "stderrOffset"
>;

export function toExecInfo(reply: ExecStateReply): ExecInfo {
  return {
    id: reply.id,
    sandboxId: reply.containerId,
    argv: reply.command,
    status: reply.state,
    exitCode: reply.exitCode ?? undefined,
    signal: reply.signal ?? undefined,
    ...(reply.startError === undefined ? {} : { startError: reply.startError }),
    startedAt: new Date(reply.startedAt),
    endedAt: date(reply.endedAt),
    durationMs: reply.duration ?? undefined,
    stdoutBytes: reply.stdoutBytes,
    stderrBytes: reply.stderrBytes,
  };
}

export function toFileInfo(reply: FileReply): FileInfo {
  return { ...reply, modifiedAt: new Date(reply.modifiedAt), target: reply.target ?? undefined };
}
