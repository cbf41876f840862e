import { isAidoError } from "@aido/sdk/protocol";
import { AGENT_STORY_ID, type SwarmMessage } from "../../../core/swarm/messages/message.ts";
import { parseMessage } from "../../../core/swarm/messages/parse-message.ts";
import type { WorkerOutput } from "../../../core/swarm/workers/workers.ts";
import { printableJson } from "../printable.ts";
import { textLines } from "./board.ts";
import { countOf, formatCount, STORY_MARKS } from "./board-words.ts";
import { LineSplitter } from "./line-splitter.ts";
import { drawLine, type Span } from "./spans.ts";

/** What a worker's adapter wrote: a message, a line of its log, or something that is neither. */
export type LogEntry =
  | { readonly type: "message"; readonly message: SwarmMessage }
  | { readonly type: "log"; readonly text: string }
  | { readonly type: "invalid"; readonly problem: string; readonly text: string };

const MOST_PATHS = 5;
const INDENT = " ".repeat(10);

/** Entries out of recorded output, in its order. */
export class WorkerLog {
  readonly #streams = { stdout: new LineSplitter(), stderr: new LineSplitter() };

  push({ stream, data }: WorkerOutput): LogEntry[] {
    return this.#streams[stream].push(data).map((line) => toEntry(stream, line));
  }

  /** What was not ended by a newline. */
  end(): LogEntry[] {
    return (["stdout", "stderr"] as const).flatMap((stream) =>
      this.#streams[stream].end().map((line) => toEntry(stream, line)),
    );
  }
}

function toEntry(stream: WorkerOutput["stream"], text: string): LogEntry {
  if (stream === "stderr") return { type: "log", text };
  try {
    return { type: "message", message: parseMessage(text) };
  } catch (thrown) {
    if (!isAidoError(thrown)) throw thrown;
    return { type: "invalid", problem: thrown.message, text };
  }
}

export function entryJson(entry: LogEntry): string {
  return printableJson(entry);
}

/** For people: when, which story, what. */
export function entryLines(entry: LogEntry, colour: boolean): string[] {
  return spansOf(entry).map((spans) => drawLine(spans, Number.POSITIVE_INFINITY, colour));
}

function spansOf(entry: LogEntry): Span[][] {
  switch (entry.type) {
    case "log":
      return [[INDENT, [entry.text, "dim"]]];
    case "invalid":
      return [
        [INDENT, ["not a message", "red"], `: ${entry.problem}`],
        [INDENT, [entry.text, "dim"]],
      ];
    case "message":
      return withTime(entry.message.timestamp, messageSpans(entry.message));
  }
}

function withTime(timestamp: string, lines: readonly Span[][]): Span[][] {
  const time = new Date(timestamp).toTimeString().slice(0, 8);
  return lines.map((line, index) => [index === 0 ? `${time}  ` : INDENT, ...line]);
}

function messageSpans(message: SwarmMessage): Span[][] {
  switch (message.type) {
    case "progress-update":
      return progressSpans(message.payload);
    case "completion": {
      const { status, prUrl, errors } = message.payload;
      const head: Span[] = [[status, status === "completed" ? "green" : "red"]];
      return [
        prUrl === null ? head : [...head, `  ${prUrl}`],
        ...errors.map((text): Span[] => [[text, "red"]]),
      ];
    }
    case "error":
      return [[[message.payload.code, "red"], `: ${message.payload.message}`]];
    case "task-request":
      return [[`task ${message.payload.taskFilePath} on ${message.payload.branchName}`]];
  }
}

function progressSpans(payload: Extract<SwarmMessage, { type: "progress-update" }>["payload"]): Span[][] {
  const { storyId, status, output, usage, changedFiles = [] } = payload;
  const [, style] = STORY_MARKS[status];
  const lines = textLines(output);
  const told: Span[][] = lines.map((line) => [line]);
  if (storyId !== AGENT_STORY_ID) {
    const [first, ...rest] = told;
    const head: Span[] = [`${storyId} `, [status.replace("_", " "), style]];
    told.splice(0, told.length, first === undefined ? head : [...head, "  ", ...first], ...rest);
  }
  const left = changedFiles.length - MOST_PATHS;
  if (changedFiles.length > 0) {
    const more = left > 0 ? ` and ${countOf(left, "more file")}` : "";
    told.push([[`changed ${changedFiles.slice(0, MOST_PATHS).join(", ")}${more}`, "dim"]]);
  }
  if (usage !== undefined && told.length === 0) {
    const tokens = formatCount(usage.inputTokens + usage.outputTokens);
    told.push([[`${countOf(usage.turns, "turn")}, ${tokens} tokens so far`, "dim"]]);
  }
  return told;
}
