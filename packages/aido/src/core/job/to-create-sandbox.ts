import type { CreateSandbox, Parsed, SandboxCreateRequest } from "@aido/sdk/protocol";
import { AGENT_LABEL, WEB_TERMINAL_LABEL } from "./job-labels.ts";
import { toEnv, toLabels, toSnapshotDestination } from "./json-fields.ts";
import { resolveStack } from "./resolve-stack.ts";

const MIB = 1024 * 1024;
const GIB = 1024 * MIB;

/** A job's request as one for a sidecar sandbox. What is empty or 0 is left to the operator's defaults, and its caps. */
export function toCreateSandbox(request: Parsed<SandboxCreateRequest>): CreateSandbox {
  const { image, stack } = request;
  return {
    profile: "sidecar",
    name: filled(request.name),
    image: filled(image) ?? (stack === "" ? undefined : resolveStack(stack)),
    env: toEnv(request.envJson),
    labels: {
      ...toLabels(request.metadataJson),
      ...(image === "" ? {} : { image }),
      ...(stack === "" ? {} : { stack }),
      ...(request.agentIdentifier === "" ? {} : { [AGENT_LABEL]: request.agentIdentifier }),
      ...(request.webTerminalEnabled ? { [WEB_TERMINAL_LABEL]: "true" } : {}),
    },
    limits: {
      cpus: positive(request.cpuCores),
      memoryBytes: positive(request.memoryMb * MIB),
      diskBytes: positive(request.diskGb * GIB),
    },
    ttlMs: positive(request.maxLifetimeSeconds * 1000),
    idleTimeoutMs: positive(request.idleTimeoutSeconds * 1000),
    snapshotDestination: toSnapshotDestination(request.metadataJson),
    token: filled(request.sidecarToken),
  };
}

function filled(text: string): string | undefined {
  return text.trim() === "" ? undefined : text.trim();
}

function positive(value: number): number | undefined {
  return value === 0 ? undefined : value;
}
