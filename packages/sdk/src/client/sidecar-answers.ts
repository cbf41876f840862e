/** What a sidecar answers, read as existing sidecars write it: more than one shape, and parts that are missing. */

type Json = Readonly<Record<string, unknown>>;

export interface SidecarCommandResult {
  exitCode: number;
  stdout: string;
  stderr: string;
  durationMs: number;
}

export interface SidecarAgentResult {
  success: boolean;
  response: string;
  error: string | undefined;
  traceId: string;
  durationMs: number;
  usage: { inputTokens: number; outputTokens: number };
  sessionId: string;
}

export function toCommandResult(answer: unknown): SidecarCommandResult {
  const body = object(answer);
  const result = "result" in body ? object(body["result"]) : body;
  return {
    exitCode: number(result["exitCode"]),
    stdout: text(result["stdout"]),
    stderr: text(result["stderr"]),
    durationMs: number(result["duration"]),
  };
}

/** `asked` is the session that was to be gone on with, which counts when the answer names none. */
export function toAgentResult(answer: unknown, asked: string | undefined): SidecarAgentResult {
  const body = object(answer);
  const data = object(body["data"]);
  const metadata = object(data["metadata"]);
  const usage = object(body["usage"] ?? data["tokenUsage"] ?? data["usage"]);
  return {
    success: body["success"] === true,
    response: first(body["response"], data["finalText"]),
    error: errorText(body["error"]),
    traceId: first(body["traceId"], metadata["traceId"]),
    durationMs: number(body["durationMs"]),
    usage: { inputTokens: number(usage["inputTokens"]), outputTokens: number(usage["outputTokens"]) },
    sessionId: first(body["sessionId"], metadata["sessionId"], asked),
  };
}

/** What is said of a failure: text, or an object with a message. */
export function errorText(error: unknown): string | undefined {
  if (typeof error === "string") return error === "" ? undefined : error;
  const { message } = object(error);
  return typeof message === "string" ? message : undefined;
}

export function object(value: unknown): Json {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Json) : {};
}

export function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

export function number(value: unknown): number {
  return typeof value === "number" && Number.isFinite(value) ? value : 0;
}

function first(...candidates: readonly unknown[]): string {
  return text(candidates.find((value) => typeof value === "string" && value !== ""));
}
