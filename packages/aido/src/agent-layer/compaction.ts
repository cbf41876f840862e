import type { AgentMessage, ModelClient } from "./model-client.ts";
import type { SessionStore, StoredMessage } from "./session-store.ts";

/** Set aside for the system prompt, the tool definitions and the reply. */
const RESERVED_TOKENS = { system: 2_000, tools: 4_000, reply: 5_000 } as const;
const COMPACT_AT = 0.8;
const KEEP_MESSAGES = 10;
const MAX_SUMMARY_TOKENS = 800;
const CHARS_PER_TOKEN = 4;

/** Close enough for a decision, and the same for every provider. */
export function estimateTokens(message: AgentMessage): number {
  const calls = message.toolCalls === undefined ? 0 : JSON.stringify(message.toolCalls).length;
  return Math.ceil((message.content.length + calls) / CHARS_PER_TOKEN);
}

export function compactionThreshold(contextTokens: number): number {
  const reserved = RESERVED_TOKENS.system + RESERVED_TOKENS.tools + RESERVED_TOKENS.reply;
  return Math.floor((contextTokens - reserved) * COMPACT_AT);
}

/**
 * The oldest messages that may go: never the task itself, never the last ten, and never a tool call apart
 * from its results.
 */
export function messagesToCompact(messages: readonly StoredMessage[]): readonly StoredMessage[] {
  let end = messages.length - KEEP_MESSAGES;
  while (end > 1 && messages[end]?.role === "tool") end -= 1;
  return messages.slice(1, Math.max(1, end));
}

export interface CompactionDeps {
  store: SessionStore;
  model: ModelClient;
  contextTokens: number;
}

/** Replaces old messages by a summary when the session has grown past its threshold. */
export async function compactIfNeeded(
  deps: CompactionDeps,
  sessionId: string,
  signal?: AbortSignal,
): Promise<boolean> {
  const messages = await deps.store.listMessages(sessionId);
  const total = sum(messages);
  if (total <= compactionThreshold(deps.contextTokens)) return false;
  const old = messagesToCompact(messages);
  if (old.length === 0) return false;

  const reply = await deps.model.reply([{ role: "user", content: summaryPrompt(old) }], [], signal);
  const content = `[Summary of earlier work]\n${reply.text}`.slice(0, MAX_SUMMARY_TOKENS * CHARS_PER_TOKEN);
  const tokenCount = estimateTokens({ role: "user", content });
  await deps.store.compact(
    sessionId,
    old.map((message) => message.sequence),
    { content, tokenCount },
    { tokensBefore: total, tokensAfter: total - sum(old) + tokenCount },
  );
  return true;
}

function summaryPrompt(messages: readonly StoredMessage[]): string {
  const lines = messages.map((message) => {
    const calls =
      message.toolCalls?.map((call) => ` ${call.name}(${JSON.stringify(call.arguments)})`).join(",") ?? "";
    return `${message.role}:${calls} ${message.content}`;
  });
  return [
    `Summarise the work below in at most ${MAX_SUMMARY_TOKENS} tokens.`,
    "Keep decisions, file names, commands that matter, results and what is still to do.",
    "",
    ...lines,
  ].join("\n");
}

function sum(messages: readonly StoredMessage[]): number {
  return messages.reduce((total, message) => total + message.tokenCount, 0);
}
