import type { AgentPlace } from "../../core/agent/agent-adapter.ts";
import { asCount, asObject } from "../../core/agent/bounded-lines.ts";

const MAX_REMEMBERED = 10_000;
const MAX_RESPONSE_CHARS = 1024 * 1024;
const ANSWERS = new Set(["agent_message_chunk", "agent_thought_chunk", "tool_call"]);
type Json = Readonly<Record<string, unknown>>;

/** From the agent's updates to aido's events. Everything in them is the sandbox's word: nothing is taken for granted. */
export class UpdateReader {
  /** What it said last: the text after its last use of a tool. */
  response: string | undefined;
  readonly #place: AgentPlace;
  readonly #tools = new Map<string, string>();
  #sessionId: string | undefined;
  #parts = 1;
  #isAnswering = false;

  constructor(place: AgentPlace) {
    this.#place = place;
  }

  /** From now on; an agent that takes a session up again tells all of it once more. */
  listen(sessionId: string): void {
    this.#sessionId = sessionId;
  }

  async take(params: unknown): Promise<void> {
    const { sessionId, update } = asObject(params) ?? {};
    const told = asObject(update);
    if (told === undefined || this.#sessionId === undefined || sessionId !== this.#sessionId) return;
    const kind = told["sessionUpdate"];
    this.#countTurn(told);
    if (kind === "agent_message_chunk") await this.#text(asObject(told["content"])?.["text"]);
    if (kind === "tool_call" || kind === "tool_call_update") await this.#toolCall(told);
  }

  /** What the agent's last answer says about its tokens. */
  async usage(answer: object): Promise<void> {
    const usage = asObject((answer as { usage?: unknown }).usage);
    if (usage === undefined) return;
    const input = ["inputTokens", "cachedReadTokens", "cachedWriteTokens"].map((name) =>
      asCount(usage[name]),
    );
    const inputTokens = input.reduce((sum, count) => sum + count, 0);
    const outputTokens = asCount(usage["outputTokens"]);
    await this.#place.emit({ type: "usage", usage: { inputTokens, outputTokens } });
  }

  /**
   * The protocol does not tell of answers: one begins with what the agent says or wants to do, and goes on until a
   * tool's result is there.
   */
  #countTurn(told: Json): void {
    const kind = told["sessionUpdate"];
    const isResult = kind === "tool_call_update" && ["completed", "failed"].includes(String(told["status"]));
    if (!isResult && !ANSWERS.has(String(kind))) return;
    if (!isResult && !this.#isAnswering) this.#place.countTurn();
    this.#isAnswering = !isResult;
  }

  async #text(text: unknown): Promise<void> {
    if (typeof text !== "string") return;
    this.response = ((this.response ?? "") + text).slice(0, MAX_RESPONSE_CHARS);
    await this.#place.emit({ type: "text", id: `part-${this.#parts}`, text });
  }

  async #toolCall(told: Json): Promise<void> {
    const id = String(told["toolCallId"]);
    const title = told["title"];
    if (this.response !== undefined) this.#parts += 1;
    this.response = undefined;
    if (typeof title === "string" && this.#tools.size < MAX_REMEMBERED) this.#tools.set(id, title);
    const name = this.#tools.get(id) ?? "";
    const input = told["rawInput"];
    await this.#place.emit({ type: "toolCall", id, name, status: toStatus(told["status"]), input });
  }
}

function toStatus(status: unknown): "running" | "done" | "failed" {
  if (status === "completed") return "done";
  return status === "failed" ? "failed" : "running";
}
