import { extname } from "node:path/posix";
import { RUNTIME_IMAGES, type RuntimeName } from "@aido/sdk/protocol";

const RUNTIMES: Readonly<Record<string, RuntimeName>> = {
  ".py": "python",
  ".js": "node",
  ".mjs": "node",
  ".cjs": "node",
  ".ts": "node",
  ".mts": "node",
  ".sh": "bash",
  ".bash": "bash",
};
const INTERPRETERS: Readonly<Record<RuntimeName, string>> = { python: "python3", node: "node", bash: "bash" };

/** The runtime that a task's extension asks for; undefined when it says nothing. */
export function runtimeOfTask(task: string): RuntimeName | undefined {
  return RUNTIMES[extname(task).toLowerCase()];
}

/** The program that understands the task: by its extension, else by the runtime, else bash. */
export function interpreterFor(runtime: string, task: string): string {
  return INTERPRETERS[runtimeOfTask(task) ?? (isRuntimeName(runtime) ? runtime : "bash")];
}

export function runCommand(runtime: string, task: string): readonly string[] {
  return [interpreterFor(runtime, task), `/task/${task}`];
}

/** A runtime with a name of its own has a fixed image; any other value is one. */
export function runtimeImage(runtime: string): string {
  return isRuntimeName(runtime) ? RUNTIME_IMAGES[runtime] : runtime;
}

function isRuntimeName(runtime: string): runtime is RuntimeName {
  return Object.hasOwn(RUNTIME_IMAGES, runtime);
}
