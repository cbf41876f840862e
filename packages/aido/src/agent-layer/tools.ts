import type { ContainerLayer, ExecResult } from "./container-layer.ts";
import { DockerError } from "./docker-error.ts";

export interface ToolDefinition {
  name: string;
  description: string;
  /** JSON Schema of the arguments. */
  parameters: Readonly<Record<string, unknown>>;
}

export interface ToolCall {
  id: string;
  name: string;
  arguments: Readonly<Record<string, unknown>>;
}

const text = (description: string) => ({ type: "string", description });
const object = (properties: Record<string, unknown>, required: string[]) => ({
  type: "object",
  properties,
  required,
  additionalProperties: false,
});

export const TOOLS: readonly ToolDefinition[] = [
  {
    name: "execute_command",
    description: "Run a shell command in the sandbox's working directory.",
    parameters: object({ command: text("The command line, run by sh -c") }, ["command"]),
  },
  {
    name: "read_file",
    description: "Read a file below the working directory.",
    parameters: object({ path: text("Path relative to the working directory") }, ["path"]),
  },
  {
    name: "write_file",
    description: "Write a file below the working directory; missing folders are made.",
    parameters: object(
      { path: text("Path relative to the working directory"), content: text("The whole content") },
      ["path", "content"],
    ),
  },
  {
    name: "list_directory",
    description: "List a folder below the working directory.",
    parameters: object({ path: { ...text("Path relative to the working directory"), default: "." } }, []),
  },
];

/** Runs one call. Whatever goes wrong in it is told to the model; only a lost session throws. */
export async function executeTool(
  layer: ContainerLayer,
  containerId: string,
  call: ToolCall,
  signal?: AbortSignal,
): Promise<string> {
  try {
    return formatResult(await dispatch({ layer, containerId, signal }, call));
  } catch (thrown) {
    signal?.throwIfAborted();
    if (thrown instanceof DockerError && thrown.recoverable)
      return `[error: ${thrown.code}] ${thrown.message}`;
    if (thrown instanceof ToolArgumentError) return `[error: INVALID_ARGUMENTS] ${thrown.message}`;
    throw thrown;
  }
}

/** Standard output, then a `[stderr]` block, then the exit code. */
export function formatResult(result: ExecResult): string {
  const parts: string[] = [];
  if (result.stdout !== "") parts.push(result.stdout);
  if (result.stderr !== "") parts.push(`[stderr]\n${result.stderr}`);
  parts.push(`[exit code: ${result.exitCode}]`);
  return parts.join("\n");
}

class ToolArgumentError extends Error {}

interface ToolPlace {
  layer: ContainerLayer;
  containerId: string;
  signal: AbortSignal | undefined;
}

function dispatch({ layer, containerId, signal }: ToolPlace, call: ToolCall): Promise<ExecResult> {
  const argument = (name: string, fallback?: string): string => {
    const value = call.arguments[name] ?? fallback;
    if (typeof value !== "string") throw new ToolArgumentError(`${call.name} needs a string "${name}"`);
    return value;
  };
  switch (call.name) {
    case "execute_command":
      return layer.execInContainer(containerId, argument("command"), undefined, signal);
    case "read_file":
      return layer.readFileInContainer(containerId, argument("path"));
    case "write_file":
      return layer.writeFileInContainer(containerId, argument("path"), argument("content"));
    case "list_directory":
      return layer.listDirectoryInContainer(containerId, argument("path", "."));
    default:
      throw new ToolArgumentError(
        `there is no tool "${call.name}"; there are ${TOOLS.map((tool) => tool.name).join(", ")}`,
      );
  }
}
