import type { Parsed, TaskRequest, TaskResult } from "@aido/sdk/protocol";
import type { JobSandbox } from "./job-caller.ts";
import type { HandlerDeps, JobAgents, JobContext } from "./job-handler.ts";
import { AGENT_LABEL } from "./job-labels.ts";

type Question = Omit<Parsed<TaskRequest>, "sidecarUrl" | "sidecarToken">;

/** Lets the agent of a sandbox work, whose token has been checked. What is empty or 0 is left to the agent. */
export async function askAgent(
  { agents, activity }: Pick<HandlerDeps, "activity"> & { agents: JobAgents },
  sandbox: JobSandbox,
  { prompt, sessionId, maxTurns, model, contextJson, timeoutMs }: Question,
  { signal }: Pick<JobContext, "signal">,
): Promise<TaskResult> {
  using _ = activity.begin(sandbox.id, "session");
  const answer = await agents.run(
    sandbox.id,
    {
      message: prompt,
      identifier: sandbox.labels[AGENT_LABEL],
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
