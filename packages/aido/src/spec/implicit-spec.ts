import { extname } from "node:path";
import type { RunSpec, RuntimeName } from "@aido/sdk/protocol";

const BY_EXTENSION: Readonly<Record<string, RuntimeName>> = {
  ".py": "python",
  ".js": "node",
  ".mjs": "node",
  ".cjs": "node",
  ".ts": "node",
  ".mts": "node",
  ".sh": "bash",
  ".bash": "bash",
};
const TTL_MS = 600_000;

/** The spec of a task that is run without one: a runtime by its extension, ten minutes, no inputs, no network. */
export function implicitSpec(task: string): { spec: RunSpec; text: string } {
  const runtime = BY_EXTENSION[extname(task).toLowerCase()] ?? "bash";
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
