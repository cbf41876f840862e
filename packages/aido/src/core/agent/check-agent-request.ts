import { type AgentRequest, AidoError } from "@aido/sdk/protocol";

export const DEFAULT_TIMEOUT_MS = 30 * 60_000;
const MAX_TIMEOUT_MS = 24 * 3_600_000;
const MAX_TURNS = 10_000;
const MAX_MESSAGE_BYTES = 8 * 1024 * 1024;
/** It travels in a variable too, which the kernel bounds at 128 KiB. */
const MAX_CONTEXT_BYTES = 64 * 1024;
const SESSION_ID = /^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}$/;
const MODEL = /^[A-Za-z0-9][\w.:@/[\]-]{0,255}$/;

export interface CheckedRequest {
  readonly identifier: string | undefined;
  readonly message: string;
  readonly sessionId: string | undefined;
  readonly maxTurns: number | undefined;
  readonly model: string | undefined;
  readonly context: Readonly<Record<string, unknown>> | undefined;
  readonly timeoutMs: number;
}

/** Empty texts and zeros mean nothing. Raises VALIDATION_ERROR. */
export function checkAgentRequest(request: AgentRequest): CheckedRequest {
  if (request.message.trim() === "") {
    throw invalid("There is no message for the agent", "Say what it shall do.");
  }
  if (Buffer.byteLength(request.message) > MAX_MESSAGE_BYTES) {
    throw invalid("The message has over 8 MiB", "Write it to a file of the sandbox and name the file.");
  }
  const context = given(request.context);
  if (context !== undefined && Buffer.byteLength(JSON.stringify(context)) > MAX_CONTEXT_BYTES) {
    throw invalid("The context has over 64 KiB", "Write it to a file of the sandbox and name the file.");
  }
  return {
    identifier: matching("identifier", request.identifier, SESSION_ID),
    message: request.message,
    sessionId: matching("sessionId", request.sessionId, SESSION_ID),
    maxTurns: within("maxTurns", request.maxTurns, MAX_TURNS),
    model: matching("model", request.model, MODEL),
    context,
    timeoutMs: within("timeoutMs", request.timeoutMs, MAX_TIMEOUT_MS) ?? DEFAULT_TIMEOUT_MS,
  };
}

function given(context: AgentRequest["context"]): AgentRequest["context"] {
  return context === undefined || Object.keys(context).length === 0 ? undefined : context;
}

function matching(name: string, value: string | undefined, pattern: RegExp): string | undefined {
  if (value === undefined || value === "") return undefined;
  if (pattern.test(value)) return value;
  throw invalid(`The ${name} ${JSON.stringify(value.slice(0, 100))} has characters that none can have`);
}

function within(name: string, value: number | undefined, most: number): number | undefined {
  if (value === undefined || value === 0) return undefined;
  if (Number.isSafeInteger(value) && value > 0 && value <= most) return value;
  throw invalid(`${name} must be a whole number from 0 to ${most}, not ${value}`);
}

function invalid(message: string, hint?: string): AidoError {
  return new AidoError("VALIDATION_ERROR", message, { hint });
}
