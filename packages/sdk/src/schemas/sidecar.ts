import { z } from "zod";
import { date, filePath, milliseconds } from "./values.ts";

/** The longest text that fits into one argument of a command. */
const MAX_COMMAND_CHARS = 131_071;
const MAX_TIMEOUT_MS = 2_592_000_000;
const text = z.string().regex(/^[^\0]*$/, "must not contain NUL");
const size = z.number().int().min(1).max(1000);
const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]*$/;

/** Existing clients send whatever they have: what cannot be a variable is left out. */
const variables = z.record(z.string(), z.unknown()).transform((given) => {
  const env: Record<string, string> = {};
  for (const [name, value] of Object.entries(given)) {
    const isPlain = typeof value === "string" || typeof value === "number" || typeof value === "boolean";
    if (VARIABLE.test(name) && isPlain && !String(value).includes("\0")) env[name] = String(value);
  }
  return env;
});

export const sidecarCommandBody = z.object({
  command: text.max(MAX_COMMAND_CHARS).refine((command) => command.trim() !== "", "must not be empty"),
  cwd: filePath.optional(),
  env: variables.optional(),
  /** Milliseconds; 0 means no limit. */
  timeout: milliseconds.max(MAX_TIMEOUT_MS).optional(),
});
export const sidecarCommandReply = z.object({
  success: z.literal(true),
  result: z.object({
    /** 124 when the time was over. */
    exitCode: z.number(),
    stdout: z.string(),
    stderr: z.string(),
    duration: z.number(),
    /** More was written than one answer carries. */
    truncated: z.boolean().optional(),
  }),
});

export const sidecarHealthReply = z.object({
  status: z.enum(["ok", "unavailable"]),
  backends: z.object({ total: z.number() }),
  timestamp: date,
});
export const sidecarDetailsReply = z.object({
  status: z.enum(["healthy", "degraded", "unhealthy"]),
  /** Of all processes of the sandbox. */
  memory: z.object({ heapUsed: z.number(), limit: z.number() }).optional(),
  process: z.object({ pid: z.number(), count: z.number(), cpuMs: z.number() }).optional(),
  /** Seconds. */
  uptime: z.number(),
});

export const sidecarEncoding = z.enum(["utf8", "base64"]);
export const sidecarWriteBody = z.object({
  path: filePath,
  content: z.string(),
  encoding: sidecarEncoding.optional(),
});
export const sidecarWriteReply = z.object({
  success: z.literal(true),
  /** SHA-256, hex. */
  data: z.object({ path: z.string(), hash: z.string(), size: z.number() }),
});
export const sidecarReadBody = z.object({ path: filePath, encoding: sidecarEncoding.optional() });
export const sidecarReadReply = z.object({
  success: z.literal(true),
  data: z.object({
    path: z.string(),
    content: z.string(),
    encoding: sidecarEncoding,
    hash: z.string(),
    size: z.number(),
  }),
});

export const sidecarTerminalBody = z.object({
  name: text.max(128).optional(),
  title: text.max(128).optional(),
  /** A path inside the sandbox; bash where there is one, else sh. */
  shell: filePath.startsWith("/").optional(),
  cwd: filePath.optional(),
  cols: size.optional(),
  rows: size.optional(),
  env: variables.optional(),
});
export const sidecarTerminal = z.object({
  sessionId: z.string(),
  name: z.string(),
  shell: z.string(),
  isRunning: z.boolean(),
  exitCode: z.number().nullable(),
  signal: z.string().nullable(),
  createdAt: date,
  /** Where its stream goes on from now. */
  offset: z.number(),
  streamUrl: z.string(),
});
export type SidecarTerminal = z.infer<typeof sidecarTerminal>;
export const sidecarTerminalReply = z.object({ success: z.literal(true), data: sidecarTerminal });
export const sidecarTerminalsReply = z.object({ success: z.literal(true), data: z.array(sidecarTerminal) });
export const sidecarStreamQuery = z.strictObject({
  /** Bytes of output to skip; an event's id is the offset after it, so `Last-Event-ID` will do as well. */
  offset: z.coerce.number().int().nonnegative().optional(),
  encoding: sidecarEncoding.optional(),
});
export const sidecarExecuteBody = z.object({ command: text.max(MAX_COMMAND_CHARS) });
export const sidecarInputBody = z.object({ data: z.string(), encoding: sidecarEncoding.optional() });
export const sidecarResizeBody = z.object({ cols: size, rows: size });
const MAX_MESSAGE_CHARS = 8 * 1024 * 1024;
const turns = z.number().int().min(0).max(10_000).optional();
export const sidecarAgentBody = z.object({
  identifier: z.string().max(64).optional(),
  message: z.string().min(1).max(MAX_MESSAGE_CHARS),
  sessionId: z.string().max(128).optional(),
  backend: z.object({ model: z.string().max(256).optional() }).optional(),
  /** What the agent is told besides the message, and how often it may ask its model. */
  metadata: z.looseObject({ maxTurns: turns, maxSteps: turns }).optional(),
  /** Milliseconds; 0 means the server's own limit. */
  timeout: milliseconds.max(MAX_TIMEOUT_MS).optional(),
});
export type SidecarAgentBody = z.infer<typeof sidecarAgentBody>;
export const sidecarAgentReply = z.object({
  success: z.boolean(),
  response: z.string(),
  error: z.string().nullable(),
  traceId: z.string(),
  durationMs: z.number(),
  usage: z.object({ inputTokens: z.number(), outputTokens: z.number() }),
  sessionId: z.string(),
  data: z.object({
    finalText: z.string(),
    metadata: z.object({ sessionId: z.string(), traceId: z.string() }),
  }),
});
export const sidecarAgentsReply = z.object({
  agents: z.array(z.object({ identifier: z.string(), displayName: z.string(), description: z.string() })),
  count: z.number(),
});
export const sidecarCancelBody = z.object({ sessionId: z.string().max(128).optional() });
export const sidecarDoneReply = z.object({ success: z.literal(true) });
export const sidecarErrorReply = z.object({
  success: z.literal(false),
  error: z.object({ code: z.string(), message: z.string() }),
});
