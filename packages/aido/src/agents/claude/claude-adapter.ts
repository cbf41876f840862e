import type { AgentUsage } from "@aido/sdk/protocol";
import { AidoError } from "@aido/sdk/protocol";
import {
  type AgentAdapter,
  type AgentOutcome,
  type AgentPlace,
  type AgentTurn,
  TURNS_USED_UP,
} from "../../core/agent/agent-adapter.ts";
import { asCount, asObject, boundedLines, parseObject } from "../../core/agent/bounded-lines.ts";
import { argvOf } from "../../core/agent/fill-argv.ts";

const MAX_LINE_BYTES = 4 * 1024 * 1024;
/** An agent that makes up more of anything than a run can have costs no more memory for it. */
const MAX_REMEMBERED = 10_000;
const SESSION = /^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$/;
type Json = Readonly<Record<string, unknown>>;

/** Claude Code without its terminal: the message is its standard input, each line of its output one event. */
export class ClaudeAdapter implements AgentAdapter {
  async run(turn: AgentTurn, place: AgentPlace): Promise<AgentOutcome> {
    const process = await place.start({
      argv: [...argvOf(turn), ...toArguments(turn)],
      // It refuses to work without asking as root unless it is told that it is in a sandbox.
      env: { IS_SANDBOX: "1", CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1", ...turn.agent.env },
    });
    const feeding = process.write(turn.message).then(() => process.closeStdin());
    feeding.catch(() => undefined);
    const reader = new ClaudeReader(place);
    for await (const line of boundedLines(process.stdout, MAX_LINE_BYTES)) {
      const event = parseObject(line);
      if (event !== undefined) await reader.take(event);
    }
    if (reader.outcome !== undefined) {
      await process.ended();
      return reader.outcome;
    }
    await process.succeeded();
    throw new AidoError("AGENT_FAILED", "Claude Code ended without a result");
  }
}

function toArguments(turn: AgentTurn): readonly string[] {
  const { model, maxTurns, context, reference, agent } = turn;
  const told =
    context === undefined ? "" : `What the caller says besides, as JSON: ${JSON.stringify(context)}`;
  return [
    "-p",
    ...["--output-format", "stream-json", "--verbose"],
    ...(agent.permissions === "allow" ? ["--dangerously-skip-permissions"] : []),
    ...(model === undefined ? [] : ["--model", model]),
    ...(maxTurns === undefined ? [] : ["--max-turns", String(maxTurns)]),
    ...(reference === undefined ? [] : ["--resume", reference]),
    ...(told === "" ? [] : ["--append-system-prompt", told]),
  ];
}

/** From its events to aido's. Everything in them is the sandbox's word: nothing is taken for granted. */
class ClaudeReader {
  outcome: AgentOutcome | undefined;
  readonly #place: AgentPlace;
  readonly #tools = new Map<string, string>();
  /** Of each answer of the model; an answer comes in several lines that all tell the same. */
  readonly #usage = new Map<string, AgentUsage>();
  #reference: string | undefined;
  #parts = 0;

  constructor(place: AgentPlace) {
    this.#place = place;
  }

  async take(event: Json): Promise<void> {
    await this.#keep(event["session_id"]);
    // What an agent of the agent says is its tool's business.
    const isOwn = event["parent_tool_use_id"] === undefined || event["parent_tool_use_id"] === null;
    if (event["type"] === "assistant" && isOwn) await this.#assistant(asObject(event["message"]) ?? {});
    if (event["type"] === "user" && isOwn) await this.#toolResults(asObject(event["message"]) ?? {});
    if (event["type"] === "result") await this.#result(event);
  }

  async #keep(value: unknown): Promise<void> {
    if (typeof value !== "string" || value === this.#reference || !SESSION.test(value)) return;
    this.#reference = value;
    await this.#place.keepReference(value);
  }

  async #assistant(message: Json): Promise<void> {
    if (!this.#usage.has(String(message["id"]))) this.#place.countTurn();
    for (const part of contentOf(message)) {
      if (part["type"] === "text" && typeof part["text"] === "string") {
        this.#parts += 1;
        await this.#place.emit({ type: "text", id: `part-${this.#parts}`, text: part["text"] });
      }
      if (part["type"] === "tool_use") {
        const id = String(part["id"]);
        const name = String(part["name"]);
        if (this.#tools.size < MAX_REMEMBERED) this.#tools.set(id, name);
        await this.#place.emit({ type: "toolCall", id, name, status: "running", input: part["input"] });
      }
    }
    const usage = asObject(message["usage"]);
    if (usage === undefined || this.#usage.size >= MAX_REMEMBERED) return;
    this.#usage.set(String(message["id"]), toUsage(usage));
    await this.#place.emit({ type: "usage", usage: sum(this.#usage.values()) });
  }

  async #toolResults(message: Json): Promise<void> {
    for (const part of contentOf(message)) {
      if (part["type"] !== "tool_result") continue;
      const id = String(part["tool_use_id"]);
      const status = part["is_error"] === true ? "failed" : "done";
      await this.#place.emit({ type: "toolCall", id, name: this.#tools.get(id) ?? "", status });
    }
  }

  async #result(event: Json): Promise<void> {
    const said = typeof event["result"] === "string" ? event["result"] : undefined;
    const usage = asObject(event["usage"]);
    const total = usage === undefined ? sum(this.#usage.values()) : toUsage(usage);
    await this.#place.emit({ type: "usage", usage: total });
    const success = event["subtype"] === "success" && event["is_error"] !== true;
    this.outcome = {
      success,
      response: said,
      usage: total,
      error: success ? undefined : explain(event, said),
    };
  }
}

function contentOf(message: Json): readonly Json[] {
  const content = message["content"];
  return Array.isArray(content) ? content.map(asObject).filter((part) => part !== undefined) : [];
}

/** What was read from the model's cache was given to it all the same. */
function toUsage(usage: Json): AgentUsage {
  return {
    inputTokens:
      asCount(usage["input_tokens"]) +
      asCount(usage["cache_creation_input_tokens"]) +
      asCount(usage["cache_read_input_tokens"]),
    outputTokens: asCount(usage["output_tokens"]),
  };
}

function sum(usages: Iterable<AgentUsage>): AgentUsage {
  const total = { inputTokens: 0, outputTokens: 0 };
  for (const { inputTokens, outputTokens } of usages) {
    total.inputTokens += inputTokens;
    total.outputTokens += outputTokens;
  }
  return total;
}

function explain(event: Json, said: string | undefined): string {
  if (event["subtype"] === "error_max_turns") return TURNS_USED_UP;
  const errors = Array.isArray(event["errors"])
    ? event["errors"].filter((one) => typeof one === "string")
    : [];
  return (said || errors.join("; ") || `Claude Code failed: ${String(event["subtype"])}`).slice(0, 2_000);
}
