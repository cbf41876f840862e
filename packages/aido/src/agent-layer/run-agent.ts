import { compactIfNeeded, estimateTokens } from "./compaction.ts";
import type { ContainerLayer } from "./container-layer.ts";
import type { AgentMessage, ModelClient } from "./model-client.ts";
import type { SessionStore } from "./session-store.ts";
import { executeTool, TOOLS } from "./tools.ts";

export const MAX_STEPS = 50;
const DEFAULT_CONTEXT_TOKENS = 128_000;

export interface AgentDeps {
  layer: ContainerLayer;
  store: SessionStore;
  model: ModelClient;
  maxSteps?: number;
  contextTokens?: number;
}

export interface AgentResult {
  text: string;
  steps: number;
  /** False when the steps ran out before the model was done. */
  finished: boolean;
}

const SYSTEM_PROMPT =
  "You are a coding agent in an isolated sandbox. Use the tools to do the task, check your work, then answer in plain text.";

/** Asks the model, runs the tools it calls, and goes on until it answers without calling one. */
export async function runAgent(
  deps: AgentDeps,
  session: { id: string; task: string },
  containerId: string,
  signal?: AbortSignal,
): Promise<AgentResult> {
  const remember = (message: AgentMessage) =>
    deps.store.appendMessage(session.id, message, estimateTokens(message));
  const contextTokens = deps.contextTokens ?? DEFAULT_CONTEXT_TOKENS;
  const maxSteps = deps.maxSteps ?? MAX_STEPS;
  await remember({ role: "user", content: session.task });

  let text = "";
  for (let step = 1; step <= maxSteps; step++) {
    signal?.throwIfAborted();
    await compactIfNeeded({ store: deps.store, model: deps.model, contextTokens }, session.id, signal);
    const history = await deps.store.listMessages(session.id);
    const reply = await deps.model.reply(
      [{ role: "system", content: SYSTEM_PROMPT }, ...history],
      TOOLS,
      signal,
    );
    text = reply.text;
    await remember({
      role: "assistant",
      content: reply.text,
      ...(reply.toolCalls.length === 0 ? {} : { toolCalls: reply.toolCalls }),
    });
    if (reply.toolCalls.length === 0) return { text, steps: step, finished: true };
    for (const call of reply.toolCalls) {
      const content = await executeTool(deps.layer, containerId, call, signal);
      await remember({ role: "tool", content, toolCallId: call.id });
    }
  }
  return { text, steps: maxSteps, finished: false };
}
