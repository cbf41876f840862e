import type { AgentArgv, AgentTurn } from "./agent-adapter.ts";

const PLACEHOLDER = /\{(\w+)\}/g;

/** The agent's command for one turn. */
export function argvOf(turn: AgentTurn): readonly string[] {
  return fillArgv(turn.agent.argv, {
    message: turn.message,
    sessionId: turn.sessionId,
    // Empty in a session's first run, so that a program is told to go on only where there is something.
    resumeId: turn.reference ?? "",
    model: turn.model ?? "",
    maxTurns: turn.maxTurns === undefined ? "" : String(turn.maxTurns),
    context: turn.context === undefined ? "" : JSON.stringify(turn.context),
  });
}

/** Names in braces that are no placeholders stay as they are written. */
export function fillArgv(template: AgentArgv, values: Readonly<Record<string, string>>): readonly string[] {
  const known = new Map(Object.entries(values));
  const fill = (word: string) =>
    word.replace(PLACEHOLDER, (written, name: string) => known.get(name) ?? written);
  const isWhole = (group: readonly string[]) =>
    group.every((word) => [...word.matchAll(PLACEHOLDER)].every(([, name]) => known.get(name ?? "") !== ""));
  return template.flatMap((part) => {
    if (typeof part === "string") return [fill(part)];
    return isWhole(part) ? part.map(fill) : [];
  });
}
