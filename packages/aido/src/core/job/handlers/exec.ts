import {
  AidoError,
  type ExecInfo,
  type ExecJobRequest,
  type ExecJobResult,
  type Parsed,
} from "@aido/sdk/protocol";
import { collect } from "../../exec/collect.ts";
import { findSidecar } from "../find-sidecar.ts";
import type { HandlerDeps, JobContext, JobHandler } from "../job-handler.ts";
import { toEnv } from "../json-fields.ts";

/** What an answer carries of each stream; the whole is recorded with the exec. */
const MAX_OUTPUT_BYTES = 1024 * 1024;
const TIMED_OUT = 124;

type Command = Pick<Parsed<ExecJobRequest>, "command" | "cwd" | "envJson" | "timeoutMs">;

export function exec(deps: HandlerDeps): JobHandler<"EXEC"> {
  return async (request, context) => {
    const { id } = await findSidecar(deps, context, request);
    return await execIn(deps, id, request, context);
  };
}

/** Runs a shell command in a sandbox whose token has been checked. */
export async function execIn(
  { execs, activity }: Pick<HandlerDeps, "execs" | "activity">,
  sandboxId: string,
  { command, cwd, envJson, timeoutMs }: Command,
  { signal }: Pick<JobContext, "signal">,
): Promise<ExecJobResult> {
  refuseEmpty(command);
  const request = { argv: ["sh", "-c", command], env: toEnv(envJson), cwd, timeoutMs };
  const options = { maxBytes: MAX_OUTPUT_BYTES, signal };
  using _ = activity.begin(sandboxId, "session");
  const done = await collect(execs, sandboxId, request, options);
  return {
    exitCode: exitCodeOf(done.info),
    stdout: done.stdout.toString(),
    stderr: done.stderr.toString(),
    ...(done.truncated.stdout || done.truncated.stderr ? { truncated: true } : {}),
  };
}

export function refuseEmpty(command: string): void {
  if (command.trim() !== "") return;
  throw new AidoError("VALIDATION_ERROR", "command is empty", { details: { field: "command" } });
}

function exitCodeOf({ id, sandboxId, status, exitCode }: ExecInfo): number {
  if (status === "timeout") return TIMED_OUT;
  if (exitCode !== undefined) return exitCode;
  throw new AidoError("CONTAINER_LOST", `Sandbox ${sandboxId} ended while the command ran`, {
    hint: "Nobody saw how it ended; look at the sandbox before it is run again.",
    details: { execId: id, status },
  });
}
