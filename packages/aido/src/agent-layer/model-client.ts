import type { ToolCall, ToolDefinition } from "./tools.ts";

export interface AgentMessage {
  role: "system" | "user" | "assistant" | "tool";
  content: string;
  /** What the assistant wants done; its answers follow as messages of role `tool`. */
  toolCalls?: readonly ToolCall[];
  /** For role `tool`: which call this answers. */
  toolCallId?: string;
}

export interface ModelReply {
  text: string;
  toolCalls: readonly ToolCall[];
}

/** The model behind an agent. Implementations speak to a provider; tests script one. */
export interface ModelClient {
  reply(
    messages: readonly AgentMessage[],
    tools: readonly ToolDefinition[],
    signal?: AbortSignal,
  ): Promise<ModelReply>;
}
