import type { AgentEvent } from "@aido/sdk/protocol";
import { errorBody, wireError } from "../error-reply.ts";
import type { AgentWire } from "../streams/agent-stream.ts";
import type { ServerEvent } from "../streams/event-stream.ts";

/** A part is sent whole with each change, so it must not grow without end: its text goes on in a new one. */
const MAX_PART_CHARS = 16 * 1024;
const TOOL_STATUS = { running: "running", done: "completed", failed: "error" } as const;

/** What an agent does, in the words of the sidecar API: parts of its message that change, then the result. */
export class AgentEvents implements AgentWire {
  readonly #parts = new Map<string, { id: string; text: string; number: number }>();

  toWire(event: AgentEvent): ServerEvent {
    switch (event.type) {
      case "start": {
        const { type, ...data } = event;
        return { event: type, data };
      }
      case "text":
        return part({ ...this.#grown(event.id, event.text), type: "text" });
      case "toolCall": {
        const state = {
          status: TOOL_STATUS[event.status],
          ...(event.input === undefined ? {} : { input: event.input }),
        };
        return part({ id: event.id, type: "tool", tool: event.name, state });
      }
      case "usage":
        return { event: "usage", data: event.usage };
      case "error":
        return { event: "error", data: { code: event.code, message: event.message } };
      case "result": {
        const { success, response, sessionId, traceId, usage, durationMs } = event.result;
        const metadata = { sessionId, traceId };
        const data = { success, finalText: response, metadata, tokenUsage: usage, durationMs };
        return { event: "result", data };
      }
    }
  }

  done(): ServerEvent {
    return { event: "done", data: {} };
  }

  failed(thrown: unknown): ServerEvent {
    const { code, message } = errorBody(wireError(thrown), "").error;
    return { event: "error", data: { code, message } };
  }

  #grown(id: string, text: string): { id: string; text: string } {
    const before = this.#parts.get(id) ?? { id, text: "", number: 1 };
    const isFull = before.text.length > 0 && before.text.length + text.length > MAX_PART_CHARS;
    const number = before.number + (isFull ? 1 : 0);
    const now = isFull ? { id: `${id}-${number}`, text, number } : { ...before, text: before.text + text };
    this.#parts.set(id, now);
    return { id: now.id, text: now.text };
  }
}

function part(value: object): ServerEvent {
  return { event: "message.part.updated", data: { part: value } };
}
