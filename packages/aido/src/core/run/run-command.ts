import { extname } from "node:path/posix";
import { RUNTIME_IMAGES } from "@aido/sdk/protocol";

const BY_EXTENSION: Readonly<Record<string, string>> = {
  ".py": "python3",
  ".js": "node",
  ".mjs": "node",
  ".cjs": "node",
  ".ts": "node",
  ".mts": "node",
  ".sh": "bash",
  ".bash": "bash",
};
const BY_RUNTIME: Readonly<Record<string, string>> = { python: "python3", node: "node", bash: "bash" };

/** The program that understands the task: by its extension, else by the runtime, else bash. */
export function interpreterFor(runtime: string, task: string): string {
  return BY_EXTENSION[extname(task).toLowerCase()] ?? BY_RUNTIME[runtime] ?? "bash";
}

export function runCommand(runtime: string, task: string): readonly string[] {
  return [interpreterFor(runtime, task), `/task/${task}`];
}

/** A runtime with a name of its own has a fixed image; any other value is one. */
export function runtimeImage(runtime: string): string {
  return Object.hasOwn(RUNTIME_IMAGES, runtime)
    ? RUNTIME_IMAGES[runtime as keyof typeof RUNTIME_IMAGES]
    : runtime;
}
