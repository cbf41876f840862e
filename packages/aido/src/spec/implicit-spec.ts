import type { RunSpec } from "@aido/sdk/protocol";
import { runtimeOfTask } from "../core/run/run-command.ts";

const TTL_MS = 600_000;

/** The spec of a task that is run without one: a runtime by its extension, ten minutes, no inputs, no network. */
export function implicitSpec(task: string): { spec: RunSpec; text: string } {
  const runtime = runtimeOfTask(task) ?? "bash";
  const spec: RunSpec = {
    name: runtime,
    runtime,
    ttlMs: TTL_MS,
    inputs: [],
    outputs: [],
    limits: {},
    timeoutMs: 0,
    env: {},
    network: "none",
    steps: [],
  };
  return { spec, text: `name: ${runtime}\nruntime: ${runtime}\nttl: ${TTL_MS / 60_000}m\n` };
}
