import { z } from "zod";
import { AGENT_KINDS } from "../protocol/agent.ts";

const MAX_MESSAGE_CHARS = 8 * 1024 * 1024;

export const agentRunBody = z.strictObject({
  message: z.string().min(1).max(MAX_MESSAGE_CHARS),
  identifier: z.string().max(64).optional(),
  sessionId: z.string().max(128).optional(),
  maxTurns: z.number().int().min(0).max(10_000).optional(),
  model: z.string().max(256).optional(),
  context: z.record(z.string(), z.unknown()).optional(),
  timeoutMs: z.number().int().min(0).optional(),
});
export const agentResultReply = z.object({
  success: z.boolean(),
  response: z.string(),
  error: z.string().optional(),
  errorCode: z.string().optional(),
  traceId: z.string(),
  durationMs: z.number(),
  usage: z.object({ inputTokens: z.number(), outputTokens: z.number() }),
  sessionId: z.string(),
});
export const agentListReply = z.object({
  agents: z.array(
    z.object({
      identifier: z.string(),
      displayName: z.string(),
      description: z.string(),
      kind: z.enum(AGENT_KINDS),
      isDefault: z.boolean(),
    }),
  ),
  count: z.number(),
});
export const agentCancelBody = z.strictObject({ sessionId: z.string().max(128).optional() });
export const agentCancelReply = z.object({ success: z.literal(true), cancelled: z.number() });
