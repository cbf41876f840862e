import type { Aido } from "@aido/sdk";
import { AidoError, type ExecInfo } from "@aido/sdk/protocol";
import { sidecarCommandBody, sidecarCommandReply } from "@aido/sdk/schemas";
import type { Operation } from "../operation.ts";
import { readOutput } from "../routes/exec-output.ts";
import { sandboxIdOf, sidecarOperation } from "./sidecar-operation.ts";

/** As `timeout` of the shell has it. */
const TIMED_OUT = 124;

export function commandRoutes(aido: Aido): Operation[] {
  return [
    sidecarOperation({
      id: "runSidecarCommand",
      method: "post",
      path: "/terminals/commands",
      summary: "Run a shell command to its end",
      body: sidecarCommandBody,
      replies: {
        200: { schema: sidecarCommandReply, description: "It has ended, with whatever exit code" },
      },
      handle: async ({ body, request, http }) => {
        const sandboxId = sandboxIdOf(http);
        const { command, cwd, env, timeout: timeoutMs } = body;
        // A client that goes away stops waiting; the command goes on and its output is recorded.
        const started = await aido.execs.start(sandboxId, {
          argv: ["sh", "-c", command],
          cwd,
          env,
          timeoutMs,
        });
        const info = await aido.execs.wait(sandboxId, started.id, request.signal);
        const { stdout, stderr, truncated } = await readOutput(aido, info, {}, "utf8", request.signal);
        const result = {
          exitCode: exitCodeOf(info),
          stdout,
          stderr,
          duration: info.durationMs ?? 0,
          ...(truncated === undefined ? {} : { truncated }),
        };
        return http.json({ success: true, result });
      },
    }),
  ];
}

function exitCodeOf(info: ExecInfo): number {
  if (info.status === "timeout") return TIMED_OUT;
  if (info.exitCode !== undefined) return info.exitCode;
  throw new AidoError("CONTAINER_LOST", "The sandbox ended before the command did", {
    details: { execId: info.id },
  });
}
