import { AidoError, type ErrorCode } from "@aido/sdk/protocol";
import type { SidecarAgentBody } from "@aido/sdk/schemas";

export interface SidecarAgentRequest {
  message: string;
  identifier?: string | undefined;
  sessionId?: string | undefined;
  maxTurns?: number | undefined;
  model?: string | undefined;
  context?: Readonly<Record<string, unknown>> | undefined;
  timeoutMs?: number | undefined;
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

export type SidecarAgentEvent =
  | { type: "start"; identifier: string; sessionId: string; traceId: string }
  | { type: "text"; id: string; text: string }
  | { type: "toolCall"; id: string; name: string; status: "running" | "done" | "failed"; input?: unknown }
  | { type: "usage"; usage: SidecarAgentResult["usage"] }
  | { type: "error"; code: ErrorCode; message: string }
  | { type: "result"; result: SidecarAgentResult };

/** What the sidecar API needs of whatever runs agents in sandboxes. */
export interface SidecarAgents {
  list(): Promise<readonly { identifier: string; displayName: string; description: string }[]>;
  run(
    sandbox: string,
    request: SidecarAgentRequest,
    options?: { signal?: AbortSignal },
  ): Promise<SidecarAgentResult>;
  stream(
    sandbox: string,
    request: SidecarAgentRequest,
    signal?: AbortSignal,
  ): AsyncIterable<SidecarAgentEvent>;
  cancel(sandbox: string, sessionId?: string): Promise<number>;
}

/** Until something runs agents, asking for one is told as existing sidecars tell it. */
export const NO_AGENTS: SidecarAgents = {
  list: async () => [],
  run: async () => {
    throw noBackend();
  },
  // biome-ignore lint/correctness/useYield: it fails before there is anything to yield
  async *stream() {
    throw noBackend();
  },
  cancel: async () => 0,
};

export function toAgentRequest(body: SidecarAgentBody): SidecarAgentRequest {
  const { maxTurns, maxSteps, ...context } = body.metadata ?? {};
  return {
    message: body.message,
    identifier: body.identifier,
    sessionId: body.sessionId,
    maxTurns: maxTurns ?? maxSteps,
    model: body.backend?.model,
    context: Object.keys(context).length === 0 ? undefined : context,
    timeoutMs: body.timeout,
  };
}

function noBackend(): AidoError {
  return new AidoError("UNSUPPORTED", "There is no agent backend");
}
