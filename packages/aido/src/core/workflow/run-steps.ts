import type {
  AgentStep,
  CommandStep,
  TaskResult,
  WorkflowStep,
  WorkflowStepResult,
} from "@aido/sdk/protocol";
import type { Clock } from "../clock.ts";
import { askAgent } from "../job/ask-agent.ts";
import { execIn } from "../job/handlers/exec.ts";
import type { HandlerDeps } from "../job/job-handler.ts";

/** What the history keeps of each text; the whole output of a command is recorded with its exec. */
const KEPT_CHARACTERS = 64 * 1024;

export type StepDeps = Pick<HandlerDeps, "execs" | "activity" | "agents"> & { readonly clock: Clock };

/** One after the other, until one fails. Each is handed over as it ends, so that what was done is known in any case. */
export async function runSteps(
  deps: StepDeps,
  sandboxId: string,
  steps: readonly WorkflowStep[],
  { signal, onStep }: { signal: AbortSignal; onStep: (result: WorkflowStepResult) => void },
): Promise<void> {
  let sessionId = "";
  for (const step of steps) {
    signal.throwIfAborted();
    const result =
      step.kind === "command"
        ? await runCommand(deps, sandboxId, step, signal)
        : await runAgent(deps, sandboxId, { ...step, sessionId: step.sessionId || sessionId }, signal);
    sessionId = result.sessionId || sessionId;
    onStep(result);
    if (!result.success) return;
  }
}

/** What the steps come to: the last one's answer, and the sum of what they took. */
export function taskOf(steps: readonly WorkflowStepResult[]): TaskResult {
  const last = steps.at(-1);
  const sum = (of: (step: WorkflowStepResult) => number) =>
    steps.reduce((total, step) => total + of(step), 0);
  return {
    success: last?.success ?? false,
    result: last?.result ?? "",
    error: last === undefined || last.success ? "" : errorOf(last),
    traceId: steps.findLast(({ traceId }) => traceId !== "")?.traceId ?? "",
    durationMs: sum(({ durationMs }) => durationMs),
    inputTokens: sum(({ inputTokens }) => inputTokens),
    outputTokens: sum(({ outputTokens }) => outputTokens),
    sessionId: steps.findLast(({ sessionId }) => sessionId !== "")?.sessionId ?? "",
  };
}

function errorOf({ name, exitCode, error }: WorkflowStepResult): string {
  if (exitCode === undefined) return error;
  return [`${name} ended with exit code ${exitCode}`, error.trim()].filter((part) => part !== "").join(": ");
}

async function runAgent(
  deps: StepDeps,
  sandboxId: string,
  step: AgentStep,
  signal: AbortSignal,
): Promise<WorkflowStepResult> {
  const { agents } = deps;
  if (agents === undefined) throw new Error("a step for an agent without agents");
  const answer = await askAgent({ ...deps, agents }, sandboxId, step, { signal });
  return { name: step.name, kind: "agent", ...answer, ...kept(answer.result, answer.error) };
}

async function runCommand(
  deps: StepDeps,
  sandboxId: string,
  step: CommandStep,
  signal: AbortSignal,
): Promise<WorkflowStepResult> {
  const began = deps.clock.now().getTime();
  const { exitCode, stdout, stderr, truncated } = await execIn(deps, sandboxId, step, { signal });
  return {
    name: step.name,
    kind: "command",
    success: exitCode === 0,
    exitCode,
    traceId: "",
    durationMs: Math.max(0, deps.clock.now().getTime() - began),
    inputTokens: 0,
    outputTokens: 0,
    sessionId: "",
    ...(truncated === true ? { truncated } : {}),
    ...kept(stdout, stderr),
  };
}

function kept(result: string, error: string): { result: string; error: string; truncated?: true } {
  const isLong = result.length > KEPT_CHARACTERS || error.length > KEPT_CHARACTERS;
  return {
    result: result.slice(0, KEPT_CHARACTERS),
    error: error.slice(0, KEPT_CHARACTERS),
    ...(isLong ? { truncated: true as const } : {}),
  };
}
