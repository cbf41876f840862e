import type { Parsed, TaskRequest, TaskResult } from "@aido/sdk/protocol";
import type { HandlerDeps, JobAgents, JobContext } from "./job-handler.ts";

type Question = Omit<Parsed<TaskRequest>, "sidecarUrl" | "sidecarToken">;

/** Lets the agent of a sandbox work, whose token has been checked. Which one it is the sandbox or the session says. */
export async function askAgent(
  { agents, activity }: Pick<HandlerDeps, "activity"> & { agents: JobAgents },
  sandboxId: string,
  { prompt, sessionId, maxTurns, model, contextJson, timeoutMs }: Question,
  { signal }: Pick<JobContext, "signal">,
): Promise<TaskResult> {
  using _ = activity.begin(sandboxId, "session");
  const answer = await agents.run(
    sandboxId,
    {
      message: prompt,
      sessionId: sessionId || undefined,
      maxTurns: maxTurns || undefined,
      model: model || undefined,
      context: contextJson,
      timeoutMs: timeoutMs || undefined,
    },
    { signal },
  );
  return {
    success: answer.success,
    result: answer.response,
    error: answer.error ?? "",
    traceId: answer.traceId,
    durationMs: answer.durationMs,
    inputTokens: answer.usage.inputTokens,
    outputTokens: answer.usage.outputTokens,
    sessionId: answer.sessionId || sessionId,
  };
}
