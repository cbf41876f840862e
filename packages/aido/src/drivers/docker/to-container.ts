import type Docker from "dockerode";
import type { Container, ContainerState } from "../../core/driver/driver.ts";
import { LABEL } from "./labels.ts";

export function toContainer(raw: Docker.ContainerInspectInfo): Container {
  const state = toState(raw.State.Status);
  const labels = raw.Config.Labels ?? {};
  const [uid = 0, gid = 0] = (labels[LABEL.user] ?? "").split(":").map(Number);
  return {
    sandboxId: labels[LABEL.sandbox] ?? "",
    containerId: raw.Id,
    state,
    nativeState: raw.State.Status,
    exitCode: state === "exited" ? raw.State.ExitCode : undefined,
    outOfMemory: raw.State.OOMKilled,
    image: raw.Config.Image,
    runtime: raw.HostConfig.Runtime,
    imageEnv: toEnv(raw.Config.Env ?? []),
    user: { uid, gid },
    startedAt: toDate(raw.State.StartedAt),
    finishedAt: state === "exited" ? toDate(raw.State.FinishedAt) : undefined,
  };
}

function toEnv(pairs: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    pairs.map((pair) => {
      const equals = pair.indexOf("=");
      return equals < 0 ? [pair, ""] : [pair.slice(0, equals), pair.slice(equals + 1)];
    }),
  );
}

function toState(status: string): ContainerState {
  if (status === "created") return "created";
  return status === "running" || status === "paused" || status === "restarting" ? "running" : "exited";
}

/** The engine writes the year 1 for "not yet". */
function toDate(text: string): Date | undefined {
  const date = new Date(text);
  return Number.isNaN(date.getTime()) || date.getUTCFullYear() < 1970 ? undefined : date;
}
